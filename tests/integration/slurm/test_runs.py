"""Runs on a real Slurm: how each end is told."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import maple_parsl
from maple_parsl.runs import backend, place
from maple_parsl.runs.run import Run
from maple_parsl.runs.state import RunState
from tests.integration import kills
from tests.integration.slurm import bed as site
from tests.testbeds.slurm.cluster import Testbed

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(240)]
SIZE = {"nodes": 2, "gpus_per_node": 2, "cpus": 1, "walltime": "5m"}
FIELDS = {"site": "bed", "queue": "gpu", **SIZE, "preflight": "off"}


@pytest.fixture(autouse=True)
def bed(slurm: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Testbed]:
    kills.prepare(tmp_path, monkeypatch)
    commands = site.put_commands(slurm, tmp_path / "commands")
    monkeypatch.setenv("PATH", f"{commands}:{Path(sys.executable).parent}:{os.environ['PATH']}")
    # A folder below /tmp is seen by all nodes of this cluster, as they are one machine.
    monkeypatch.setattr(place, "_NODE_LOCAL", ("/dev/shm",))
    backend._backends.clear()
    yield slurm
    slurm.cancel_all()


def launch(program: str, **fields: object) -> Run:
    Path("program.py").write_text(program)
    return maple_parsl.run(request=maple_parsl.Request.of(script="program.py", **{**FIELDS, **fields}))


def until(test: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < end
        time.sleep(0.2)


def test_done_and_followed_from_another_process() -> None:
    run = launch("import os; print('rank', os.environ['RANK'], flush=True)\n")
    code = f"import maple_parsl as m; print(m.Run.open({run.id!r}).result(100))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert ": done, code 0" in done.stdout
    log = run.logs()
    assert all(f"rank {rank}" in log for rank in range(4))
    assert run.result(1).hosts


def test_the_first_failing_rank_and_its_code() -> None:
    run = launch("import os, sys, time\nif os.environ['RANK'] == '3': sys.exit(7)\ntime.sleep(100)\n")
    outcome = run.result(100)
    assert (outcome.state, outcome.rank, outcome.code) == (RunState.FAILED, 3, 7)


def test_cancelled_while_running() -> None:
    run = launch("import time; print('up', flush=True); time.sleep(100)\n")
    until(lambda: "up" in run.logs())
    run.cancel()
    assert run.result(100).state is RunState.CANCELLED


def test_cancelled_while_waiting(bed: Testbed) -> None:
    first = launch("import time; time.sleep(100)\n", nodes=4, gpus_per_node=4)
    until(lambda: first.state is RunState.RUNNING)
    second = launch("print()\n", nodes=4, gpus_per_node=4)
    until(lambda: bool(second.status().reason))
    status = second.status()
    assert status.state is RunState.PENDING
    assert status.explanation
    second.cancel()
    assert second.result(100).state is RunState.CANCELLED


def test_queued_again_and_then_done(bed: Testbed) -> None:
    program = "import os, time\nprint('attempt', os.environ['MAPLE_ATTEMPT'], os.environ['MAPLE_RESUME'], flush=True)\n"
    run = launch(program + "time.sleep(100 if os.environ['MAPLE_ATTEMPT'] == '1' else 0)\n", requeue=True)
    until(lambda: "attempt 1 0" in run.logs())
    bed.run(["scontrol", "requeue", run.job_id or ""])
    until(lambda: run.state is not RunState.RUNNING)
    assert not run.state.final
    # Slurm holds a job that was queued again back for two minutes.
    bed.run(["scontrol", "update", f"JobId={run.job_id}", "StartTime=now"], check=False)
    outcome = run.result(200)
    assert outcome.ok
    assert outcome.attempts == 2
    assert "attempt 2 1" in run.logs()


def test_a_node_that_dies(bed: Testbed) -> None:
    run = launch("import time; print('up', flush=True); time.sleep(100)\n")
    until(lambda: "up" in run.logs() and run.state is RunState.RUNNING)
    names = (run.status().hosts or "").replace("node[", "").split("-")
    node = f"node{names[-1].rstrip(']')}" if len(names) > 1 else "node2"
    try:
        bed.kill_node(node)
        outcome = run.result(150)
        assert outcome.state is RunState.NODE_FAILURE
    finally:
        bed.restart_node(node)
        bed.wait_idle()


def test_a_refusal_has_the_schedulers_words() -> None:
    with pytest.raises(maple_parsl.SubmissionError, match=r"node configuration|Node count|ore processors"):
        launch("print()\n", nodes=40)
    (run,) = maple_parsl.runs()
    assert run.state is RunState.REFUSED


def test_one_question_for_many_runs(bed: Testbed) -> None:
    runs = [launch("import time; time.sleep(60)\n", nodes=1, gpus_per_node=1) for _ in range(3)]
    until(lambda: all(run.state in (RunState.RUNNING, RunState.PENDING) for run in runs))
    answers = {run.status().asked_at for run in runs}
    assert len(answers) <= 2


def test_launched_inside_an_allocation(bed: Testbed, tmp_path: Path) -> None:
    Path("program.py").write_text("import os; print('rank', os.environ['RANK'], flush=True)\n")
    shared = "from maple_parsl.runs import place; place._NODE_LOCAL = ('/dev/shm',)"  # see the fixture
    maple = f"import sys; {shared}; from maple_parsl.cli import main; sys.exit(main())"
    words = "run --script program.py --site bed --gpus-per-node 2 --cpus 1 -q gpu --here --wait --json".split()
    names = ("MAPLE_HOME", "MAPLE_CONFIG_HOME", "MAPLE_POLL_SECONDS", "PYTHONPATH", "PATH")
    done = bed.run(
        [
            "salloc",
            "-N2",
            "--ntasks-per-node=2",
            "--gpus-per-node=2",
            "-t",
            "5",
            "-p",
            "gpu",
            sys.executable,
            "-c",
            maple,
            *words,
        ],
        check=False,
        timeout=120,
        cwd=tmp_path,
        env={name: os.environ[name] for name in names},
    )
    assert done.returncode == 0, done.stderr
    (run,) = maple_parsl.runs()
    assert run.summary.nodes == 2
    assert run.result(1).ok
    assert all(f"rank {rank}" in run.logs() for rank in range(4))
