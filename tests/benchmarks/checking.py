"""How long a check takes: in a warm process, and as a command against shellcheck."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.benchmarks.measure import ROOT, Figure, paired

_HEAD = """#!/bin/bash
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --time=01:00:00
#SBATCH --account=demo
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
"""
_BODY = """if [ -n "$STAGE_{n}" ]; then
  echo "stage {n} on $(hostname)"
  cp -r "$HOME/data/{n}" "$SCRATCH/{n}" || exit 1
fi
export OPTION_{n}="value {n}"
"""
_TAIL = 'srun torchrun --nnodes=4 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint="$MASTER_ADDR:29500" t.py\n'


def script(lines: int = 300) -> str:
    """An ordinary script of about so many lines."""
    return _HEAD + "".join(_BODY.format(n=n) for n in range((lines - 8) // 5)) + _TAIL


def figures(pairs: int = 10) -> list[Figure]:
    """Warm and cold."""
    return [warm(pairs), *cold(pairs)]


def warm(rounds: int) -> Figure:
    """The check alone, in this process."""
    from maple_parsl.checking import inspect

    text = script()
    inspect(text)
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        inspect(text)
        times.append(time.perf_counter() - started)
    rows = text.count("\n")
    return Figure("maple check, warm", statistics.median(times) * 1e3, 50, "ms", f"{rows} lines, no site")


def cold(pairs: int) -> list[Figure]:
    """The commands; none without shellcheck."""
    lint = shutil.which("shellcheck")
    if lint is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "job.sh"
        file.write_text(script())
        code = "import sys; from maple_parsl.cli import main; sys.exit(main())"
        ours, theirs = paired(
            _command([sys.executable, "-c", code, "check", str(file)]), _command([lint, str(file)]), pairs
        )
    told = f"{ours * 1e3:.0f} ms against {theirs * 1e3:.0f} ms"
    return [Figure("maple check, cold / shellcheck, cold", ours / theirs, 3, "x", told)]


def _command(argv: list[str]) -> Callable[[], float]:
    def measure() -> float:
        started = time.perf_counter()
        subprocess.run(argv, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        return time.perf_counter() - started

    return measure
