"""Runs the mini-app several times in one process, one process group after the other.

Usage: several.py TRAIN_PY RUN_DIR -- ARGUMENTS -- ARGUMENTS ...  Run number n writes to RUN_DIR/n.  The slow
part of a small run is the import of torch, which is paid just once here.
"""

import importlib
import importlib.util
import itertools
import os
import sys

train_py, run_dir, *rest = sys.argv[1:]
spec = importlib.util.spec_from_file_location("train", train_py)
assert spec is not None
assert spec.loader is not None
train = importlib.util.module_from_spec(spec)
spec.loader.exec_module(train)
main = importlib.import_module(f"{train.load_folder()}.program").main
runs = [list(run) for is_run, run in itertools.groupby(rest, lambda word: word != "--") if is_run]
for number, arguments in enumerate(runs):
    os.environ["MAPLE_RUN_DIR"] = os.path.join(run_dir, str(number))
    code = main(arguments)
    if code:
        sys.exit(code)
