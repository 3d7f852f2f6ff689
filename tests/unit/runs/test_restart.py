"""Restarts: only what can be put right or passes, capped, within one limit, and said."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import maple_parsl
from maple_parsl.cli import main
from maple_parsl.errors import LimitError, RequestError
from maple_parsl.plan import Plan
from maple_parsl.runs import restart
from maple_parsl.runs.run import Run
from maple_parsl.runs.state import RunState
from maple_parsl.runs.store import Store

from .conftest import FIELDS, WORDS, FakeScheduler

OOM = "slurmstepd: error: Detected 1 oom_kill event in StepId=1.0. Some of the step tasks have been OOM\n"
PORT = "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use\n"  # noqa: E501
PROGRAM = 'Traceback (most recent call last):\n  File "t.py", line 1, in <module>\nValueError: bad\n'


class Ends:
    """Every job that is submitted has ended at once, each with its own log, after so many minutes."""

    def __init__(
        self, fake: FakeScheduler, *logs: str | None, minutes: float = 6, saves: Callable[[int], bool]
    ) -> None:
        self.logs, self.minutes, self.saves, self.plans = list(logs), minutes, saves, list[Plan]()
        fake.on_submit = self

    def __call__(self, plan: Plan) -> None:
        assert plan.place is not None
        folder, log = Path(plan.place.run_dir), self.logs[len(self.plans)]
        self.plans.append(plan)
        number = len(self.plans)
        (folder / "log.txt").write_text(log or "")
        (folder / "checkpoints").mkdir(exist_ok=True)
        if self.saves(number):
            saved = folder / "checkpoints" / f"step-{number}"
            saved.mkdir()
            os.utime(saved, (number, number))
        code, first = (1, {"rank": 0, "node_rank": 0, "host": "n1", "code": 1}) if log is not None else (0, None)
        times = {"started": time.time() - 60 * self.minutes, "ended": time.time(), "hosts": "n1", "signal": None}
        record = {"job_id": "1", "attempt": 1, "code": code, "reason": "failed" if code else "done"}
        (folder / "started.json").write_text(
            json.dumps({"job_id": "1", "attempt": 1, "host": "n1", "started": times["started"]})
        )
        (folder / "exit.json").write_text(json.dumps({**record, **times, "first_failure": first}))


@pytest.fixture
def ends(fake: FakeScheduler) -> Callable[..., Ends]:
    def made(*logs: str | None, saves: Callable[[int], bool] = lambda number: True, **more: Any) -> Ends:
        return Ends(fake, *logs, saves=saves, **more)

    return made


def started(**more: Any) -> Run:
    return maple_parsl.run(*WORDS, **FIELDS, yes=True, **more)


def test_without_restarts_nothing_is_started_again(ends: Callable[..., Ends], store: Store) -> None:
    jobs = ends(OOM)
    run = started()
    outcome = run.result(20)
    assert (outcome.state, outcome.restarts, len(jobs.plans)) == (RunState.FAILED, (), 1)
    assert run.following() is None
    assert not (run.entry.folder / "restart.json").exists()


def test_a_change_repairs_it_and_is_said(ends: Callable[..., Ends], store: Store) -> None:
    jobs = ends(OOM, None)
    run = started(restarts=2)
    outcome = run.result(20, check=True)
    first, second = jobs.plans
    assert outcome.id != run.id
    assert (first.request.memory, second.request.memory) == ("16G", "32G")
    assert "memory becomes 32G (you had said 16G)" in "\n".join(outcome.restarts)
    assert "memory becomes 32G (you had said 16G)" in str(outcome)
    assert not first.resumes
    assert "MAPLE_RESUME=1 #" in second.script
    later = Run.open(outcome.id)
    assert later.summary.restarts is not None
    assert (later.summary.restarts["first"], later.summary.restarts["number"]) == (run.id, 1)
    assert (later.run_dir / "checkpoints" / "step-1").is_dir(), "the attempts share their checkpoints"
    assert any(outcome.id in line for line in Run.open(run.id).status().restarts)
    assert Run.open(run.id).result(20).id == outcome.id, "whoever waits later starts nothing new"
    assert len(jobs.plans) == 2


def test_a_cause_that_passes_needs_no_change(ends: Callable[..., Ends], store: Store) -> None:
    jobs = ends(PORT, None)
    outcome = started(restarts=1).result(20)
    assert outcome.ok
    assert jobs.plans[0].request == jobs.plans[1].request
    assert "port_conflict, which says nothing against the launch" in outcome.restarts[0]


@pytest.mark.parametrize(
    ("logs", "more", "why"),
    [
        ((PROGRAM,), {"restarts": 3}, "the program is at fault"),
        ((OOM, OOM), {"restarts": 3}, "the same failure came twice"),
        ((OOM, PORT), {"restarts": 1}, "1 restart were allowed"),
        ((OOM,), {"restarts": 3, "max_node_hours": 0.55}, "another attempt may take 0.50"),
    ],
    ids=["program", "twice", "cap", "hours"],
)
def test_it_stops(ends: Callable[..., Ends], store: Store, logs: tuple[str], more: dict[str, Any], why: str) -> None:
    jobs = ends(*logs)
    outcome = started(**more).result(20)
    assert (outcome.state, len(jobs.plans)) == (RunState.FAILED, len(logs))
    assert why in outcome.restarts[-1].replace("restart was", "restart were")


def test_it_stops_where_no_checkpoint_came(ends: Callable[..., Ends], store: Store) -> None:
    jobs = ends(OOM, PORT, None, saves=lambda number: number == 1)
    outcome = started(restarts=3).result(20)
    assert len(jobs.plans) == 2
    assert "no newer checkpoint" in outcome.restarts[-1]


def test_all_attempts_share_the_limit(ends: Callable[..., Ends], store: Store) -> None:
    jobs = ends(OOM, PORT, None, minutes=18)
    outcome = started(restarts=3, max_node_hours=1.0).result(20)
    assert len(jobs.plans) == 2, "0.3 and 0.3 are used, and 0.5 more would be above 1"
    assert "0.60 of 1 node-hours are used" in outcome.restarts[-1]


def test_what_all_may_cost_is_confirmed_at_first(ends: Callable[..., Ends], store: Store) -> None:
    ends()
    wide = {**FIELDS, "walltime": "8h"}
    with pytest.raises(
        LimitError, match=r"3 runs x 1 node x 08:00:00 = at most 24\.00 node-hours, charged x 1; above 10"
    ):
        maple_parsl.run(*WORDS, **wide, restarts=2)
    with pytest.raises(LimitError, match=r"at most 8\.00 node-hours, charged x 1; the limit is 5"):
        maple_parsl.run(*WORDS, **wide, restarts=2, yes=True, max_node_hours=5)
    with pytest.raises(LimitError, match=r"where a limit stops them: at most 12\.00"):
        maple_parsl.run(*WORDS, **wide, restarts=2, max_node_hours=12)
    with pytest.raises(RequestError, match="state 0 to 10"):
        started(restarts=11)
    assert not store.ids()


def test_a_cancelled_run_is_not_started_again(ends: Callable[..., Ends], store: Store) -> None:
    jobs = ends(OOM, OOM)
    run = started(restarts=2)
    run.cancel()
    assert Run.open(run.id).result(20).restarts == ("not started again: it was cancelled",)
    assert len(jobs.plans) == 1


def test_cancelling_reaches_the_attempt_that_goes_on(
    fake: FakeScheduler, ends: Callable[..., Ends], store: Store
) -> None:
    ends(OOM)
    run = started(restarts=1)
    assert run.end(20).state is RunState.FAILED
    fake.on_submit = lambda plan: None
    later = run.following()
    assert later is not None
    Run.open(run.id).cancel()
    assert fake.cancelled == [later.job_id]
    assert later.status().state in (RunState.PENDING, RunState.CANCELLED)


def test_two_who_wait_start_one(ends: Callable[..., Ends], store: Store) -> None:
    jobs = ends(OOM, None)
    run = started(restarts=1)
    run.end(20)
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(Run.open(run.id).result(20).id)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == 4
    assert len(set(found)) == 1
    assert len(jobs.plans) == 2


def test_a_refused_attempt_is_told(fake: FakeScheduler, ends: Callable[..., Ends], store: Store) -> None:
    from maple_parsl.errors import SubmissionError

    ends(OOM)
    run = started(restarts=1)

    def refuse(plan: Plan) -> None:
        raise SubmissionError("the scheduler refused: no such partition")

    run.end(20)
    fake.on_submit = refuse
    outcome = run.result(20)
    assert outcome.state in (RunState.REFUSED, RunState.NOT_SUBMITTED, RunState.FAILED)
    assert not outcome.ok
    assert len(restart.told(run)) >= 1


def test_from_the_command_line(
    ends: Callable[..., Ends], store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ["run", *WORDS, "-N", "1", "--gpus-per-node", "1", "-t", "30m", "-A", "abcd-delta-gpu", "-q", "gpuA100x4"]
    line += ["--memory", "16G", "--yes", "--restarts", "2"]
    assert main(line) == 2
    assert "--wait or --follow" in capsys.readouterr().err
    jobs = ends(OOM, None)
    assert main([*line, "--wait"]) == 0
    shown = capsys.readouterr()
    assert "note: memory becomes 32G (you had said 16G)" in shown.err
    assert "started again as run" in shown.err
    ends(OOM, None)
    assert main([*line, "--wait", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["outcome"]["ok"]
    assert told["run"] == told["outcome"]["id"]
    assert len(jobs.plans) == 2
