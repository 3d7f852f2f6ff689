"""From run() to the job's start on a real Slurm, against raw sbatch of the same script; and the client's memory."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks.measure import ROOT, Figure
from tests.integration.slurm.login import SITE
from tests.testbeds.slurm import Testbed, missing_packages

WORKER = ROOT / "tests" / "benchmarks" / "submit_worker.py"


def figures(pairs: int) -> list[Figure]:
    if missing_packages():
        print("no Slurm here: submission is not measured", file=sys.stderr)
        return []
    folder = ROOT / "build" / f"bench-{os.getpid()}"
    folder.mkdir(parents=True)
    env = {
        "PYTHONPATH": str(ROOT),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin:/usr/sbin",
        "HOME": str(folder),
        "MAPLE_HOME": str(folder / "home"),
        "MAPLE_SITE_PATH": str(SITE),
        "MAPLE_SITE": "slurm-stand",
    }
    try:
        with Testbed() as bed:
            command = [*bed.prefix_command(cwd=folder, env=env), sys.executable, str(WORKER), str(pairs)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=900)
            cold = bed_cold(bed, folder, env)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    ours, raw, memory = map(float, done.stdout.split()[-3:])
    return [
        Figure("run() to job start / raw sbatch", ours / raw, 1.2, "x", f"{ours * 1e3:.0f} ms against {raw * 1e3:.0f}"),
        Figure("client memory", memory, 150, "MB", "peak resident set of the process that ran them"),
        Figure("maple run, cold, to submitted", cold, 60, "s", "given apart: interpreter and imports included"),
    ]


def bed_cold(bed: Testbed, folder: Path, env: dict[str, str]) -> float:
    """Seconds for the command line to submit once, from a cold start."""
    (folder / "train.py").write_text("print('x')\n")
    code = "import sys; from maple_parsl.cli import main; sys.exit(main())"
    words = "run --script train.py --site slurm-stand --nodes 1 --gpus-per-node 1 --walltime 1m --queue gpu --yes"
    command = [*bed.prefix_command(cwd=folder, env=env), sys.executable, "-c", code, *words.split(), "--no-wait"]
    taken = []
    for _ in range(3):
        started = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)
