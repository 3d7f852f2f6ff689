"""How often a scheduler is asked."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

import maple_parsl
from maple_parsl.errors import SchedulerError
from maple_parsl.plan import Plan, RunPlace
from maple_parsl.runs import poll
from maple_parsl.runs.poll import Poller
from maple_parsl.runs.run import Run
from maple_parsl.runs.state import RunState
from maple_parsl.runs.store import Store
from maple_parsl.schedulers.base import JobInfo, JobState

from .conftest import FIELDS, WORDS, FakeScheduler


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def poller(root: Path, fake: FakeScheduler, clock: Clock, ids: list[str], seconds: float = 60) -> Poller:
    return Poller(root, "delta", seconds, lambda: ids, lambda: fake, clock)


def test_one_question_an_interval_for_500_runs(
    fake: FakeScheduler, store: Store, slurm_plan: Plan, tmp_path: Path
) -> None:
    for number in range(500):
        run_id = f"20261201-000000-{number:012x}"
        entry = store.add(
            slurm_plan.at(RunPlace(run_id=run_id, run_dir=str(tmp_path / run_id), work_dir=str(tmp_path)))
        )
        entry.create("intent.1.json", {"job_name": f"maple-{run_id}", "at": time.time(), "process": {}})
        entry.create("submitted.1.json", {"job_id": fake.add(f"maple-{run_id}"), "at": time.time()})
    runs = maple_parsl.runs()
    assert len(runs) == 500
    for run in runs:
        assert run.state is RunState.PENDING
    for run in runs[:50]:
        assert run.status().asked_at
    assert fake.queries == 1
    assert fake.finds == 0


def test_the_interval_is_kept_and_grows_while_nothing_happens(tmp_path: Path, fake: FakeScheduler) -> None:
    clock, job = Clock(), fake.add("a")
    one = poller(tmp_path, fake, clock, [job])
    asked = []
    for _ in range(3600):
        clock.now += 1
        before = fake.queries
        one.seen(job)
        if fake.queries > before:
            asked.append(clock.now)
    gaps = [later - earlier for earlier, later in itertools.pairwise(asked)]
    assert min(gaps) >= 60
    assert gaps == sorted(gaps)
    assert max(gaps) <= poll.SLOWEST + 1
    fake.put(job, JobState.running)
    clock.now += poll.SLOWEST
    assert one.seen(job).job is not None
    clock.now += 61
    before = fake.queries
    one.seen(job)
    assert fake.queries == before + 1  # something happened: back to the interval


def test_processes_share_one_answer(tmp_path: Path, fake: FakeScheduler) -> None:
    clock, job = Clock(), fake.add("a")
    many = [poller(tmp_path, fake, clock, [job]) for _ in range(20)]
    for _ in range(5):
        for one in many:
            clock.now += 2
            seen = one.seen(job)
            assert seen.job is not None
    assert fake.queries <= 1 + int(200 / 60)


def test_an_error_is_told_and_not_asked_again_at_once(tmp_path: Path, fake: FakeScheduler) -> None:
    clock, job = Clock(), fake.add("a")
    one = poller(tmp_path, fake, clock, [job])
    assert one.seen(job).job is not None

    def away(ids: Iterable[str]) -> dict[str, JobInfo]:
        fake.queries += 1
        raise SchedulerError("squeue did not answer within 30 s")

    fake.query = away  # type: ignore[method-assign]
    clock.now += 61
    for _ in range(20):
        clock.now += 2
        seen = one.seen(job)
    assert seen.job is not None
    assert "did not answer" in (seen.error or "")
    assert fake.queries == 2


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"jobs": 3}', b'{"jobs": {"1": {"job": {"x": 1}}}}'])
def test_a_damaged_file_of_answers_is_only_asked_for_again(tmp_path: Path, fake: FakeScheduler, content: bytes) -> None:
    clock, job = Clock(), fake.add("a")
    poller(tmp_path, fake, clock, [job]).seen(job)
    (tmp_path / "poll" / "delta.json").write_bytes(content)
    clock.now += 61
    assert poller(tmp_path, fake, clock, [job]).seen(job).job is not None


def test_a_clock_that_was_set_back_does_not_stop_questions(tmp_path: Path, fake: FakeScheduler) -> None:
    clock, job = Clock(), fake.add("a")
    poller(tmp_path, fake, clock, [job]).seen(job)
    clock.now -= 500
    poller(tmp_path, fake, clock, [job]).seen(job)
    assert fake.queries == 2


def _ask(root: str, log: str, until: float) -> None:
    class Counting(FakeScheduler):
        def query(self, job_ids: Iterable[str]) -> dict[str, JobInfo]:
            with open(log, "a") as file:
                file.write(f"{time.time()}\n")
            return super().query(job_ids)

    fake = Counting()
    one = Poller(Path(root), "delta", 0.4, lambda: ["1"], lambda: fake)
    while time.time() < until:
        one.seen("1")
        time.sleep(0.01)


def test_real_processes_at_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    began = time.time()
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_ask, args=(str(tmp_path), str(log), began + 2.5)) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(20)
    times = sorted(float(line) for line in log.read_text().split())
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert len(times) >= 2
    assert min(gaps) > 0.35
    assert len([n for n in os.listdir(tmp_path / "poll") if "turn" in n]) <= 5


def test_the_environment_sets_the_interval() -> None:
    assert poll.interval(60, {}) == 60
    assert poll.interval(60, {"MAPLE_POLL_SECONDS": "0.5"}) == 0.5
    assert poll.interval(60, {"MAPLE_POLL_SECONDS": "soon"}) == 60


def test_ended_runs_are_not_asked_about(fake: FakeScheduler, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAPLE_POLL_SECONDS", "0.05")
    run = maple_parsl.run(*WORDS, **FIELDS)
    job_id = run.job_id or ""
    os.symlink(job_id, run.run_dir / "claim")
    record = {"job_id": job_id, "attempt": 1, "code": 0, "reason": "done", "signal": None, "first_failure": None}
    (run.run_dir / "exit.json").write_text(json.dumps({**record, "started": 1, "ended": 3601, "hosts": "gpua1"}))
    outcome = run.result(5)
    assert outcome.ok
    assert outcome.node_hours == pytest.approx(1.0)
    before = fake.queries
    time.sleep(0.2)
    assert Run.open(run.id).result(1).ok
    assert fake.queries == before
