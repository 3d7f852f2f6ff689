"""Runs on the testbed's head node: run() and raw sbatch in turn, from the call to the job's first act."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import maple_parsl


def seconds_until(file: Path, started: float) -> float:
    while not file.exists():
        time.sleep(0.002)
    return time.perf_counter() - started


def idle() -> None:
    while subprocess.run(["squeue", "-h"], capture_output=True, text=True, check=True).stdout.strip():
        time.sleep(0.05)


def ours() -> float:
    idle()
    started = time.perf_counter()
    run = maple_parsl.run(
        script="train.py",
        site="slurm-stand",
        nodes=1,
        gpus_per_node=1,
        walltime="1m",
        queue="gpu",
        yes=True,
        template="plain",
        environment={"python": "/bin/true"},
    )
    return seconds_until(Path(run.run_dir) / "started.json", started)


def raw(script: str) -> float:
    idle()
    folder = Path.cwd() / f"raw-{time.time_ns()}"
    folder.mkdir()
    (folder / "job.sh").write_text(script)
    started = time.perf_counter()
    # By the environment: with --export=ALL,NAME=… Slurm logs the user in first, which takes a second.
    environ = {**os.environ, "MAPLE_RUN_DIR": str(folder)}
    subprocess.run(["sbatch", "--parsable", "job.sh"], cwd=folder, env=environ, check=True, stdout=subprocess.DEVNULL)
    return seconds_until(folder / "started.json", started)


def main() -> None:
    Path("train.py").write_text("")
    plan = maple_parsl.plan(
        script="train.py",
        site="slurm-stand",
        nodes=1,
        gpus_per_node=1,
        walltime="1m",
        queue="gpu",
        template="plain",
        environment={"python": "/bin/true"},
    )
    ours(), raw(plan.script)  # both warm
    mine, bare = [], []
    for turn in range(int(sys.argv[1])):
        for which in ("ours", "raw") if turn % 2 == 0 else ("raw", "ours"):
            mine.append(ours()) if which == "ours" else bare.append(raw(plan.script))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(statistics.median(mine), statistics.median(bare), memory)


main()
