"""The truth table, row by row, and what must hold of it everywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maple_parsl.runs.evidence import Evidence, Exit, Started
from maple_parsl.runs.jobs import CAUSES
from maple_parsl.runs.state import SETTLE, VANISH, Facts, RunState, Seen, resolve
from maple_parsl.runs.words import explain
from maple_parsl.schedulers.base import JobInfo, JobState

NOW = 10_000.0
FIRST = {"rank": 3, "local_rank": 1, "node_rank": 1, "host": "n2", "code": 7, "at": 9990}
FACTS = Facts(submitted_job="7", walltime=3600)


def record(
    reason: str, code: int = 1, first: dict[str, object] | None = None, attempt: int = 1, ended: float = 9990.0
) -> Exit:
    signal = code - 128 if code > 128 else None
    return Exit("7", attempt, code, reason, signal, first, 9000.0, ended, "n[1-2]")


def said(state: JobState | None, asked: float = NOW - 1, since: float = NOW - 1) -> Seen:
    return Seen(None if state is None else JobInfo("7", state, state.value, "squeue"), asked, since)


def evidence(exit: Exit | None = None, attempt: int | None = 1, **more: object) -> Evidence:
    started = Started("7", attempt, "n1", 9000.0) if attempt else None
    return Evidence(owner="7" if attempt else None, started=started, exit=exit, **more)  # type: ignore[arg-type]


DONE, FAILED, ENDED_BY_TERM = record("done", 0), record("failed", 7, FIRST), record("terminated", 143)
P, R = JobState.pending, JobState.running
S = RunState


@pytest.mark.parametrize(
    "found,seen,expected",
    [
        (evidence(DONE), said(R), S.DONE),
        (evidence(DONE), said(None), S.DONE),
        (evidence(DONE), said(JobState.timeout), S.DONE),
        (evidence(record("setup", 3)), said(R), S.FAILED),
        (evidence(record("allocation", 65)), Seen(), S.FAILED),
        (evidence(FAILED), said(R), S.FAILED),
        (evidence(FAILED), Seen(), S.FAILED),
        (evidence(FAILED), said(P), S.PENDING),
        (evidence(FAILED), said(P, asked=9000), S.FAILED),
        (evidence(FAILED), said(JobState.timeout), S.TIMEOUT),
        (evidence(record("failed", 137)), said(JobState.out_of_memory), S.OUT_OF_MEMORY),
        (evidence(record("failed", 137)), said(R), S.ENDING),
        (evidence(record("failed", 15, ended=9000)), said(R, since=9000), S.FAILED),
        (evidence(record("terminated", 143, ended=9000)), said(R, since=9000), S.TERMINATED),
        # Queued again for long, and running now: the new attempt has not written its start yet.
        (evidence(record("failed", 15, ended=9000)), said(R), S.ENDING),
        (evidence(record("terminated", 143, ended=9000)), said(R), S.ENDING),
        (evidence(record("failed", 15)), said(JobState.failed), S.FAILED),
        (evidence(ENDED_BY_TERM), said(JobState.timeout), S.TIMEOUT),
        (evidence(ENDED_BY_TERM), said(JobState.preempted), S.PREEMPTED),
        (evidence(ENDED_BY_TERM), said(JobState.node_failure), S.NODE_FAILURE),
        (evidence(ENDED_BY_TERM), said(JobState.cancelled), S.CANCELLED),
        (evidence(ENDED_BY_TERM), said(P), S.PENDING),
        (evidence(ENDED_BY_TERM), said(R), S.ENDING),
        (evidence(ENDED_BY_TERM), Seen(), S.ENDING),
        (evidence(ENDED_BY_TERM, asked_requeue=True), Seen(), S.PENDING),
        (evidence(ENDED_BY_TERM), said(JobState.failed), S.TERMINATED),
        (evidence(ENDED_BY_TERM, told_limit=True), said(JobState.failed), S.TIMEOUT),
        (evidence(ENDED_BY_TERM, told_limit=True), said(None, since=NOW - SETTLE), S.TIMEOUT),
        (evidence(None), said(P), S.PENDING),
        (evidence(None, attempt=None), said(P), S.PENDING),
        (evidence(None), said(R), S.RUNNING),
        (evidence(None, attempt=None), said(R), S.RUNNING),
        (evidence(None), said(JobState.done), S.ENDING),
        (evidence(None), said(JobState.done, since=NOW - SETTLE), S.FAILED),
        (evidence(None, attempt=None), said(JobState.failed, since=NOW - SETTLE), S.FAILED),
        (evidence(None), said(JobState.node_failure), S.NODE_FAILURE),
        (evidence(None), said(None), S.RUNNING),
        (evidence(None, attempt=None), said(None), S.PENDING),
        (evidence(None), said(None, since=NOW - VANISH), S.UNKNOWN),
        (evidence(None), Seen(), S.RUNNING),
        (evidence(None, attempt=None), Seen(), S.PENDING),
        (evidence(None), Seen(error="slurmctld is away"), S.RUNNING),
        # The record of attempt 1 is not the outcome of attempt 2.
        (evidence(None, attempt=2, earlier=ENDED_BY_TERM), said(R), S.RUNNING),
        (evidence(None, attempt=2, earlier=FAILED), Seen(), S.RUNNING),
    ],
)
def test_truth_table(found: Evidence, seen: Seen, expected: RunState) -> None:
    assert resolve(FACTS, found, seen, NOW).state is expected


def test_asked_for_cancelling_explains_a_missing_answer() -> None:
    facts = Facts(submitted_job="7", cancel_asked=True)
    assert resolve(facts, evidence(ENDED_BY_TERM), said(None, since=NOW - SETTLE), NOW).state is S.CANCELLED
    assert resolve(facts, evidence(None, None), said(None, since=NOW - SETTLE), NOW).state is S.CANCELLED


def test_elapsed_time_alone_makes_no_timeout() -> None:
    facts = Facts(submitted_job="7", walltime=990)
    assert resolve(facts, evidence(ENDED_BY_TERM), said(None, since=NOW - SETTLE), NOW).state is S.TERMINATED
    told = Evidence(owner="7", started=Started("7", 1, "n1", NOW - 990), exit=ENDED_BY_TERM, told_limit=True)
    assert resolve(facts, told, said(None, since=NOW - SETTLE), NOW).state is S.TIMEOUT


def test_the_job_that_claimed_the_run_is_its_job() -> None:
    found = resolve(Facts(submitted_job="8"), evidence(DONE), Seen(), NOW)
    assert (found.job_id, found.state) == ("7", S.DONE)


def test_an_old_answer_does_not_hide_a_restart() -> None:
    restarted = Evidence(owner="7", started=Started("7", 2, "n1", NOW - 5))
    assert resolve(FACTS, restarted, said(JobState.preempted, asked=NOW - 60), NOW).state is S.RUNNING


def test_the_first_failing_rank_is_told_with_every_cause() -> None:
    found = evidence(record("terminated", 143, FIRST))
    resolved = resolve(FACTS, found, said(JobState.timeout), NOW)
    text = explain(resolved, FACTS, found)
    assert "walltime" in text
    assert "rank 3 on n2 failed first, with code 7" in text


records = st.one_of(
    st.none(),
    st.builds(
        record,
        st.sampled_from(["done", "failed", "terminated", "setup"]),
        st.sampled_from([1, 7, 137, 143]),
        st.sampled_from([None, FIRST]),
        ended=st.floats(9001, NOW),
    ),
)
answers = st.builds(said, st.sampled_from([None, *JobState]), st.floats(0, NOW), st.floats(0, NOW))
facts = st.builds(Facts, submitted_job=st.just("7"), cancel_asked=st.booleans(), walltime=st.sampled_from([None, 60]))
everything = st.builds(
    evidence,
    records,
    st.sampled_from([None, 1]),
    told_limit=st.booleans(),
    asked_requeue=st.booleans(),
    present=st.booleans(),
)


@given(facts, everything, answers)
def test_what_always_holds(facts: Facts, found: Evidence, seen: Seen) -> None:
    resolved = resolve(facts, found, seen, NOW)
    if found.exit and found.exit.reason == "done":
        assert resolved.state is S.DONE
    else:
        assert resolved.state is not S.DONE  # success is only ever what the job itself recorded
    if seen.job and seen.job.state in CAUSES and seen.asked_at > 9100 and not found.exit:
        assert resolved.state.value == seen.job.state.value
    assert isinstance(explain(resolved, facts, found), str)
    later = resolve(facts, found, Seen(seen.job, NOW + 5000, 0.0), NOW + 5000)
    if seen.job is None or seen.job.state.ended:
        assert later.state.final  # nobody waits for ever


@pytest.mark.parametrize("raw,state", [("", S.UNKNOWN), ("EXPEDITING", S.RUNNING)])
def test_a_job_listed_in_a_state_nobody_knows_is_there(raw: str, state: RunState) -> None:
    seen = Seen(JobInfo("7", JobState.unknown, raw, "squeue"), NOW + 5000, 0.0)
    assert resolve(Facts(submitted_job="7"), evidence(None, 1), seen, NOW + 5000).state is state
