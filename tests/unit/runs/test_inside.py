"""--here: inside an allocation, nothing is submitted."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import maple_parsl
from maple_parsl.errors import NotHereError
from maple_parsl.runs import process
from maple_parsl.runs.inside import allocation
from maple_parsl.runs.run import Run
from maple_parsl.runs.state import RunState
from maple_parsl.runs.store import Store
from maple_parsl.schedulers.base import JobState

from .conftest import FIELDS, WORDS, FakeScheduler


def granted(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    usual = {"SLURM_JOB_ID": "77", "SLURM_JOB_NUM_NODES": "1", "SLURM_GPUS_ON_NODE": "1", "SLURM_JOB_NODELIST": "vm"}
    for name, value in {**usual, **variables}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    "variables,words",
    [
        ({"SLURM_JOB_NUM_NODES": "3"}, "has 3 nodes and the launch needs 1"),
        ({"SLURM_GPUS_ON_NODE": "0"}, "has 0 GPUs"),
    ],
)
def test_an_allocation_that_does_not_fit(
    fake: FakeScheduler, store: Store, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], words: str
) -> None:
    granted(monkeypatch, **variables)
    with pytest.raises(NotHereError, match=words):
        maple_parsl.run(*WORDS, here=True, **FIELDS)
    assert store.ids() == []


def test_what_the_allocation_fixes_need_not_be_stated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environ = {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_END_TIME": str(int(time.time()) + 600)}
    found = allocation("slurm", environ)
    assert (found.nodes, found.gpus) == (2, None)
    assert 590 <= (found.seconds or 0) <= 600
    (tmp_path / "nodes").write_text("a\na\nb\n")
    assert allocation("pbs", {"PBS_JOBID": "7.x", "PBS_NODEFILE": str(tmp_path / "nodes")}).nodes == 2
    for kind in ("slurm", "pbs"):
        with pytest.raises(NotHereError, match="in none"):
            allocation(kind, {})


def test_launched_here_and_followed(fake: FakeScheduler, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    granted(monkeypatch)
    run = maple_parsl.run(*WORDS, here=True, **FIELDS)
    outcome = run.result(30)  # there is no srun or module here: what matters is that its end is told
    assert outcome.state is RunState.FAILED
    assert outcome.job_id == "77"
    assert fake.submissions == []
    assert fake.queries == 0
    assert Run.open(run.id).outcome() == outcome


def test_cancelled_here(fake: FakeScheduler, store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    granted(monkeypatch)
    (tmp_path / "bin" / "srun").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "bin" / "srun").chmod(0o755)
    (tmp_path / "bin" / "scontrol").write_text("#!/bin/sh\necho vm\n")
    (tmp_path / "bin" / "scontrol").chmod(0o755)
    (tmp_path / "bin" / "module").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "module").chmod(0o755)
    Path("p.sh").write_text("sleep 60\n")
    request = maple_parsl.Request.of(site="delta", script="p.sh", environment={"python": "python3"}, **FIELDS)
    run = maple_parsl.run(request=request, here=True)
    until = time.monotonic() + 20
    while run.state is not RunState.RUNNING or not (run.run_dir / "bin" / "task.sh").exists():
        assert time.monotonic() < until, run.logs()
        time.sleep(0.1)
    time.sleep(0.5)
    run.cancel()
    assert run.result(20).state is RunState.CANCELLED


def test_processes_are_told_apart() -> None:
    me = process.identity()
    assert process.alive(me) is True
    assert process.alive({**me, "start": 1}) is False
    assert process.alive({**me, "boot": "another"}) is False
    assert process.alive({**me, "host": "another"}) is None
    assert process.alive({}) is None
    assert process.sender_of("no such run id at all") is None
    assert process.identity(os.getppid())["start"]


def test_a_gone_job_of_this_machine_is_told_at_once(fake: FakeScheduler, store: Store) -> None:
    run = maple_parsl.run("gpt", "ddp", "local")
    fake.put(run.job_id or "", JobState.failed)
    assert run.result(5).state is RunState.FAILED
