"""A client that submits is killed with SIGKILL at a random moment; what is left is looked into."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from maple_parsl.runs import process
from maple_parsl.runs.run import Run
from maple_parsl.runs.state import RunState
from maple_parsl.runs.store import Store
from maple_parsl.schedulers.slurm import Slurm

ROOT = Path(__file__).parents[2]
CLIENT = """\
import sys
import maple_parsl, maple_parsl.runs.start, parsl.providers, maple_parsl.provider
print("go", flush=True)
size = {"nodes": 1, "gpus_per_node": 1, "walltime": "5m", "queue": "gpu", "cpus": 1}
run = maple_parsl.run(None, None, "bed", script="program.py", **size)
print(run.id, flush=True)
"""
SITE = """\
name = "bed"
title = "Testbed"
[scheduler]
source = "the test"
checked_on = 2026-12-01
kind = "slurm"
account = "optional"
queue_option = "partition"
signal = true
[directives]
source = "the test"
checked_on = 2026-12-01
gpu_request = "gpus-per-node"
[kinds.gpu]
source = "the test"
checked_on = 2026-12-01
title = "pretended A100"
vendor = "nvidia"
gpus = 4
devices = 4
backend = "gloo"
torch_device = "cpu"
cores = 16
[launchers.default]
source = "the test"
checked_on = 2026-12-01
command = "srun"
dialect = "slurm"
rank = ["SLURM_PROCID"]
local_rank = ["SLURM_LOCALID"]
world_size = ["SLURM_NTASKS"]
node_rank = ["SLURM_NODEID"]
preferred_style = "per-device"
[environments.default]
source = "the test"
checked_on = 2026-12-01
[rendezvous]
source = "the test"
checked_on = 2026-12-01
[queues]
source = "the test"
checked_on = 2026-12-01
[[queues.entry]]
name = "gpu"
kinds = ["gpu"]
max_walltime = "02:00:00"
"""


@dataclass(frozen=True)
class Killed:
    """One kill: when, how slow sbatch was, what is found afterwards."""

    after: float
    delay: float
    run_id: str | None
    state: RunState | None
    jobs: tuple[str, ...]
    in_time: bool


def prepare(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store, a site file and a program in a folder of their own, for this process and the clients."""
    (folder / "config" / "sites").mkdir(parents=True)
    (folder / "config" / "sites" / "bed.toml").write_text(SITE)
    (folder / "program.py").write_text("print('trained')\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MAPLE_HOME", str(folder / "home"))
    monkeypatch.setenv("MAPLE_CONFIG_HOME", str(folder / "config"))
    monkeypatch.setenv("MAPLE_POLL_SECONDS", "0.3")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def slow(folder: Path, real: str) -> Path:
    """A folder with an ``sbatch`` that waits for KILLS_DELAY seconds before it is the real one."""
    folder.mkdir()
    (folder / "sbatch").write_text(f'#!/bin/sh\nsleep "${{KILLS_DELAY:-0}}"\nexec {real} "$@"\n')
    (folder / "sbatch").chmod(0o755)
    return folder


def pace(environ: Mapping[str, str] | None = None) -> float:
    """Seconds a client takes to submit when nobody kills it: how busy this machine is."""
    env = {**os.environ, **(environ or {}), "KILLS_DELAY": "0"}
    with subprocess.Popen([sys.executable, "-c", CLIENT], env=env, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "go\n"
        started = time.monotonic()
        assert client.stdout.readline()
        return time.monotonic() - started


def kill_one(rng: random.Random, pace: float, environ: Mapping[str, str] | None = None) -> Killed:
    """Start a client, kill it at a moment of its submitting, and follow what it left to an answer."""
    delay = rng.choice([0.0, 0.0, 0.4, 2.0])
    after = rng.uniform(0.0, 1.1 * pace + 0.6 * delay)
    before = set(Store().ids())
    env = {**os.environ, **(environ or {}), "KILLS_DELAY": str(delay)}
    with subprocess.Popen([sys.executable, "-c", CLIENT], env=env, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "go\n"
        time.sleep(after)
        in_time = client.poll() is None
        client.kill()
    made = set(Store().ids()) - before
    if not made:
        return Killed(after, delay, None, None, (), in_time)
    (run_id,) = made
    run = Run.open(run_id)
    until = time.monotonic() + 90
    while (state := run.state) is RunState.SUBMITTING:
        assert time.monotonic() < until, "no answer after 90 s"
        time.sleep(0.2)
    while process.sender_of(run_id) is not None:  # whatever was on its way has arrived
        time.sleep(0.1)
    return Killed(after, delay, run_id, state, _jobs(run_id), in_time)


def _jobs(run_id: str) -> tuple[str, ...]:
    return tuple(job.job_id for job in Slurm().find([f"maple-{run_id}"])[f"maple-{run_id}"])


def check(found: Killed) -> None:
    """No job lost, none double; what was not submitted can be, once, by hand."""
    if found.run_id is None:
        return
    run = Run.open(found.run_id)
    if found.state is RunState.NOT_SUBMITTED:
        assert found.jobs == (), found
        run.resubmit()
        assert len(_jobs(found.run_id)) == 1, found
    else:
        assert len(found.jobs) == 1, found
        assert run.job_id == found.jobs[0], found


def summary(found: list[Killed]) -> str:
    """How often each ending was met, of the clients that were killed before they were done."""
    words = [one.state.value if one.state else "nothing on file" for one in found if one.in_time]
    counts = ", ".join(f"{word} {count}" for word, count in sorted(Counter(words).items()))
    return f"{len(found)} kills, {len(words)} in time: {counts}"
