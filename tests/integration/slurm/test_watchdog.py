"""A rank that is stopped (SIGSTOP) on a real Slurm: named in time by the watchdog, and the job ended if asked."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.slurm.login import Login
from tests.testbeds.slurm import Testbed

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(240)]
PROGRAM = """
import os, time
for step in range(600):
    time.sleep(0.5)
    if os.environ["RANK"] == "1":
        print("step", step, flush=True)
"""


@pytest.fixture
def login(slurm: Testbed, tmp_path: Path) -> Iterator[Login]:
    yield Login(slurm, tmp_path / "home")
    slurm.cancel_all()
    slurm.wait_idle()


def process_of(run: str, rank: int) -> int:
    """The rank's Python as this machine, which all nodes are, sees it."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        told = {f"RANK={rank}".encode(), f"MAPLE_RUN_ID={run}".encode()} <= set(variables)
        if told and b"python" in words[0] and b"train.py" in words:
            return int(folder.name)
    raise AssertionError("the rank does not run")


@pytest.mark.parametrize("action", ["report", "stop"])
def test_a_stopped_rank_is_named(login: Login, action: str) -> None:
    (login.work / "train.py").write_text(PROGRAM)
    run = login.start(
        "--script", "train.py", "--site", "slurm-stand", "--nodes", "2", "--gpus-per-node", "1", "--template", "plain",
        "--watchdog", "15s", "--watchdog-action", action,
    )  # fmt: skip
    until = time.monotonic() + 60
    while "step 3" not in login.log(run):
        assert time.monotonic() < until, login.status(run)
    pid = process_of(run, rank=1)
    os.kill(pid, signal.SIGSTOP)
    stopped = time.monotonic()
    while not (status := login.status(run))["watchdog"]:
        assert time.monotonic() - stopped < 100, login.log(run)[-2000:]
        time.sleep(1)
    said = status["watchdog"]
    assert (said["rank"], said["state"], said["samples"]) == (1, "T", 2)
    assert said["host"] in ("node1", "node2")
    shown = login.maple("status", run).stdout
    assert "rank 1" in shown
    assert f"--exclude={said['host']}" in shown.replace("\n", "")
    stack = (login.run_dir(run) / "attempts/1/stalled/1.stack").read_text()
    assert "(stopped)" in stack
    if action == "report":
        os.kill(pid, signal.SIGCONT)
        until = time.monotonic() + 60
        while login.status(run)["watchdog"]:  # it goes on, so there is nothing to report any more
            assert time.monotonic() < until
            time.sleep(1)
        assert login.status(run)["state"] == "running"
    else:
        ended = login.until(run, "failed", "done", "cancelled", seconds=120)
        assert (ended["state"], ended["exit"]["reason"], ended["exit"]["code"]) == ("failed", "stalled", 77)
        assert ended["exit"]["watchdog"]["rank"] == 1
