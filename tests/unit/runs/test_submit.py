"""Exactly once, and what is found out after a crash."""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path

import pytest

import maple_parsl
from maple_parsl.errors import MapleError, RequestError, SchedulerError, StoreError, SubmissionError
from maple_parsl.plan import Plan
from maple_parsl.runs import process, recover
from maple_parsl.runs.run import Run
from maple_parsl.runs.state import RunState
from maple_parsl.runs.store import Entry, Store
from maple_parsl.runs.submit import submit

from .conftest import FIELDS, WORDS, FakeScheduler


class Killed(BaseException):
    """kill -9 of the client."""


def only(store: Store) -> Run:
    (run_id,) = store.ids()
    return Run.open(run_id)


def as_if_dead(run: Run, monkeypatch: pytest.MonkeyPatch, age: float = 60.0) -> None:
    """Make the latest intent that of a process which is gone, some time ago."""
    name = f"intent.{run.entry.submissions()}.json"
    intent = run.entry.read(name)
    assert intent is not None
    intent["process"]["start"] = -1
    intent["at"] = time.time() - age
    run.entry.write(name, intent)


def test_a_run_is_submitted_and_found_again(fake: FakeScheduler, store: Store) -> None:
    run = maple_parsl.run(*WORDS, **FIELDS)
    assert fake.submissions == [f"maple-{run.id}"]
    again = Run.open(run.id[-12:-6])
    assert again.job_id == run.job_id == "1000"
    assert again.state is RunState.PENDING
    assert (again.run_dir / "script.sh").read_text() == again.plan.script
    assert os.access(again.run_dir / "script.sh", os.X_OK)
    assert (again.run_dir / "miniapps" / "train.py").exists()


def test_a_refusal_is_kept_in_the_schedulers_words(fake: FakeScheduler, store: Store) -> None:
    def refuse(plan: Plan) -> None:
        raise SubmissionError("sbatch refused the job: Invalid account")

    fake.on_submit = refuse
    with pytest.raises(SubmissionError, match="Invalid account"):
        maple_parsl.run(*WORDS, **FIELDS)
    status = only(store).status()
    assert status.state is RunState.REFUSED
    assert "Invalid account" in status.explanation
    outcome = only(store).result(5)
    assert not outcome.ok


def test_killed_before_the_scheduler_had_it(fake: FakeScheduler, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(plan: Plan) -> None:
        raise Killed

    fake.on_submit = die
    with pytest.raises(Killed):
        maple_parsl.run(*WORDS, **FIELDS)
    run = only(store)
    assert run.state is RunState.SUBMITTING  # this process lives, and may be at it
    as_if_dead(run, monkeypatch, age=2)
    assert run.state is RunState.SUBMITTING  # too early to say
    as_if_dead(run, monkeypatch)
    run._backend.recovery._asked.clear()
    assert run.state is RunState.NOT_SUBMITTED
    assert fake.submissions == []  # nothing is ever sent again by itself
    fake.on_submit = lambda plan: None
    assert run.resubmit().state is RunState.PENDING
    assert len(fake.submissions) == 1
    with pytest.raises(RequestError, match="pending"):
        run.resubmit()


def test_killed_after_the_scheduler_had_it(fake: FakeScheduler, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def take_and_die(plan: Plan) -> None:
        fake.add(plan.job_name)
        raise Killed

    fake.on_submit = take_and_die
    with pytest.raises(Killed):
        maple_parsl.run(*WORDS, **FIELDS)
    run = only(store)
    as_if_dead(run, monkeypatch)
    assert (run.state, run.job_id) == (RunState.PENDING, "1000")
    finds = fake.finds
    assert Run.open(run.id).job_id == "1000"
    assert fake.finds == finds  # on file now


def test_a_submission_command_still_on_its_way_is_waited_for(
    fake: FakeScheduler, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(plan: Plan) -> None:
        raise Killed

    fake.on_submit = die
    with pytest.raises(Killed):
        maple_parsl.run(*WORDS, **FIELDS)
    run = only(store)
    as_if_dead(run, monkeypatch)
    monkeypatch.setattr(process, "sender_of", lambda run_id: 4711 if run_id == run.id else None)
    assert run.state is RunState.SUBMITTING
    assert fake.finds == 0


def test_from_another_machine_a_longer_time_passes(
    fake: FakeScheduler, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(plan: Plan) -> None:
        raise Killed

    fake.on_submit = die
    with pytest.raises(Killed):
        maple_parsl.run(*WORDS, **FIELDS)
    run = only(store)
    intent = run.entry.read("intent.1.json")
    assert intent is not None
    intent["process"]["host"], intent["at"] = "login7", time.time() - 100
    run.entry.write("intent.1.json", intent)
    assert run.state is RunState.SUBMITTING
    intent["at"] = time.time() - recover.GRACE_ELSEWHERE - 1
    run.entry.write("intent.1.json", intent)
    run._backend.recovery._asked.clear()
    assert run.state is RunState.NOT_SUBMITTED


def test_the_claim_is_surer_than_anything(fake: FakeScheduler, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(plan: Plan) -> None:
        raise Killed

    fake.on_submit = die
    with pytest.raises(Killed):
        maple_parsl.run(*WORDS, **FIELDS)
    run = only(store)
    os.symlink("555", run.run_dir / "claim")
    assert run.job_id == "555"
    assert fake.finds == 0


def test_a_doubtful_answer_is_not_an_end(fake: FakeScheduler, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def doubt(plan: Plan) -> None:
        fake.add(plan.job_name)
        raise SchedulerError("sbatch did not answer within 30 s")

    fake.on_submit = doubt
    with pytest.raises(SchedulerError, match="Nothing is sent again by itself"):
        maple_parsl.run(*WORDS, **FIELDS)
    as_if_dead(only(store), monkeypatch)
    assert only(store).job_id == "1000"


def test_two_processes_on_one_run(fake: FakeScheduler, store: Store, slurm_plan: Plan) -> None:
    run = maple_parsl.run(*WORDS, **FIELDS)
    with pytest.raises(StoreError, match="another process"):
        submit(run.entry, run.plan, run.run_dir / "script.sh", fake)
    assert len(fake.submissions) == 1


def test_a_full_disk_before_submission_submits_nothing(
    fake: FakeScheduler, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Entry, name: str, value: object) -> bool:
        raise StoreError("the disk is full")

    monkeypatch.setattr(Entry, "create", full)
    with pytest.raises(StoreError):
        maple_parsl.run(*WORDS, **FIELDS)
    assert fake.submissions == []


def test_a_full_disk_after_submission_loses_nothing(
    fake: FakeScheduler, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Entry.create

    def full(self: Entry, name: str, value: object) -> bool:
        if name.startswith("submitted"):
            raise StoreError("the disk is full")
        return real(self, name, value)

    with monkeypatch.context() as patch:
        patch.setattr(Entry, "create", full)
        with pytest.warns(RuntimeWarning, match="job 1000 .* found by its name"):
            run = maple_parsl.run(*WORDS, **FIELDS)
    as_if_dead(run, monkeypatch)
    assert run.job_id == "1000"


def test_nothing_half_made_stays(fake: FakeScheduler, store: Store, home: Path) -> None:
    store.root.mkdir(parents=True)
    store.runs.write_text("in the way")
    with pytest.raises(MapleError):
        maple_parsl.run(*WORDS, **FIELDS)
    assert list(Path("maple-runs").iterdir()) == []
    assert fake.submissions == []


def test_no_warning_in_the_good_case(fake: FakeScheduler, store: Store) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        maple_parsl.run(*WORDS, **FIELDS)


def test_cancelled_before_its_job_was_found(fake: FakeScheduler, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def take_and_die(plan: Plan) -> None:
        fake.add(plan.job_name)
        raise Killed

    fake.on_submit = take_and_die
    with pytest.raises(Killed):
        maple_parsl.run(*WORDS, **FIELDS)
    run = only(store)
    assert run.cancel().state is RunState.SUBMITTING
    assert fake.cancelled == []
    as_if_dead(run, monkeypatch)
    assert run.job_id == "1000"
    assert fake.cancelled == ["1000"]
    _ = run.state
    assert fake.cancelled == ["1000"]
