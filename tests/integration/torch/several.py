"""Runs the mini-app several times in one process, one process group after the other.

Usage: several.py TRAIN_PY RUN_DIR -- ARGUMENTS -- ARGUMENTS ...  Run number n writes to RUN_DIR/n.  The slow
part of a small run is the import of torch, which is paid just once here.
"""

import importlib
import importlib.util
import itertools
import os
import socket
import sys
import time
from pathlib import Path


def new_port(file: Path) -> str:
    """A free port chosen by rank 0 and passed on in ``file``.

    Each process group gets a store of its own: in torchrun's, the addresses of the group before still stand.
    """
    if os.environ["RANK"] == "0":
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            file.with_suffix(".partial").write_text(str(probe.getsockname()[1]))
        file.with_suffix(".partial").rename(file)
    while not file.exists():
        time.sleep(0.01)
    return file.read_text()


train_py, run_dir, *rest = sys.argv[1:]
spec = importlib.util.spec_from_file_location("train", train_py)
assert spec is not None
assert spec.loader is not None
train = importlib.util.module_from_spec(spec)
spec.loader.exec_module(train)
main = importlib.import_module(f"{train.load_folder()}.program").main
runs = [list(run) for is_run, run in itertools.groupby(rest, lambda word: word != "--") if is_run]
os.environ.update(MASTER_ADDR="127.0.0.1", TORCHELASTIC_USE_AGENT_STORE="False")
for number, arguments in enumerate(runs):
    os.environ["MAPLE_RUN_DIR"] = os.path.join(run_dir, str(number))
    os.environ["MASTER_PORT"] = new_port(Path(run_dir, f"port-{number}"))
    code = main(arguments)
    if code:
        sys.exit(code)
