"""The state of a run, from what its job left behind and what the scheduler says of it.

A pure function of its inputs. The first row that fits decides:

===================  ==================================  =======================================
exit record          scheduler                           state
===================  ==================================  =======================================
(no job id)          --                                  submitting, not_submitted or refused
done                 anything (it lags behind)           done
setup, allocation,   anything                            failed
preflight, stalled
skipped              anything                            cancelled (a chain had ended before it)
any other, or none   timeout, cancelled, preempted,      that; the record adds code and first
                     node_failure, out_of_memory         failing rank
failed, with a rank  pending, asked after the record     pending (queued again)
and code below 128   anything else                       failed
failed, other        pending, asked after the record     pending (queued again)
                     ended                               failed
                     running, or not asked since         ending; failed when that does not change
terminated           pending, or the job asked for it    pending (queued again)
                     ended, or knows nothing of it       cancelled if somebody asked for it, else
                                                         timeout if told of the limit, else
                                                         terminated
                     running, or not asked since         ending; terminated when that does not change
none                 pending                             pending
                     running                             running
                     ended                               ending for a moment (files travel), then
                                                         failed: no exit record
                     knows nothing of it                 running or pending for a while, then
                                                         cancelled if asked for, else unknown
                     not asked, or no answer             running if started, else pending
===================  ==================================  =======================================

A record of an earlier attempt is not the outcome. An answer that is not an end, and not clearly newer than the
latest start or exit record, counts as not asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from maple_parsl.runs.evidence import Evidence, Exit
from maple_parsl.runs.jobs import CAUSES
from maple_parsl.schedulers.base import JobInfo, JobState, listed

SETTLE = 15.0
"""Seconds for a file written on another node to be seen here."""
VANISH = 60.0
"""Seconds a scheduler may know nothing of a job before that is believed (accounting lags)."""
PATIENCE = 600.0
"""Seconds an exit record waits for a scheduler that does not answer."""
_SKEW = 2.0  # seconds by which the clocks of two machines may differ


class RunState(StrEnum):
    """Where a run stands. The values are stable and appear in JSON."""

    SUBMITTING = "submitting"
    NOT_SUBMITTED = "not_submitted"
    REFUSED = "refused"
    PENDING = "pending"
    RUNNING = "running"
    ENDING = "ending"
    DONE = "done"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    PREEMPTED = "preempted"
    NODE_FAILURE = "node_failure"
    OUT_OF_MEMORY = "out_of_memory"
    TERMINATED = "terminated"
    UNKNOWN = "unknown"

    @property
    def final(self) -> bool:
        """Nothing more will happen by itself (for ``unknown``: as far as can be told)."""
        return self not in _GOING


_GOING = {RunState.SUBMITTING, RunState.PENDING, RunState.RUNNING, RunState.ENDING}


@dataclass(frozen=True)
class Facts:
    """What the store knows of a run.

    Attributes:
        submission: how the latest submission stands.
        submitted_job: the job id it got. refusal: the scheduler's words, where it refused.
        cancel_asked: somebody asked for the end of the run.
        hand: a hand-written script, which leaves no exit record: the scheduler's verdict is the outcome.
        walltime: seconds. outside: no scheduler follows it (launched inside an allocation).
        vanish: see :data:`VANISH`.
    """

    submission: RunState | None = None
    submitted_job: str | None = None
    refusal: str | None = None
    cancel_asked: bool = False
    walltime: int | None = None
    outside: bool = False
    hand: bool = False
    vanish: float = VANISH


@dataclass(frozen=True)
class Seen:
    """The latest answer of the scheduler.

    Attributes:
        job: None when the scheduler knows nothing of the job.
        asked_at: seconds since 1970; 0 when it was not asked. since: when this answer was first given.
        error: why it could not be asked.
    """

    job: JobInfo | None = None
    asked_at: float = 0.0
    since: float = 0.0
    error: str | None = None


@dataclass(frozen=True)
class Resolved:
    """The state, the record that counts, and whether a surer answer may still come.

    Attributes:
        detail: which of several reasons for the same state; see :mod:`maple_parsl.runs.words`.
    """

    state: RunState
    exit: Exit | None = None
    detail: str = ""
    job_id: str | None = None
    job: JobInfo | None = None


def resolve(facts: Facts, evidence: Evidence, seen: Seen, now: float) -> Resolved:
    """Where the run stands at ``now`` (seconds since 1970); the table above."""
    job_id = evidence.owner or facts.submitted_job
    if job_id is None:
        return Resolved(facts.submission or RunState.NOT_SUBMITTED)
    record = evidence.exit
    answer = _current(evidence, seen)
    state, detail = _state(facts, evidence, answer, now)
    return Resolved(state, record, detail, job_id, answer.job)


def _current(evidence: Evidence, seen: Seen) -> Seen:
    """The answer, if it still says something."""
    if not listed(seen.job):
        seen = Seen(None, seen.asked_at, seen.since, seen.error)
    if seen.job is not None and seen.job.state.ended:
        newer = evidence.started and evidence.started.started > seen.asked_at + _SKEW
        return Seen(error=seen.error) if newer else seen
    newest = max(evidence.exit.ended if evidence.exit else 0.0, evidence.started.started if evidence.started else 0.0)
    return Seen(error=seen.error) if seen.asked_at < newest + _SKEW else seen


def _state(facts: Facts, evidence: Evidence, seen: Seen, now: float) -> tuple[RunState, str]:
    record = evidence.exit
    said = seen.job.state if seen.job else None
    if record is not None and record.reason == "done":
        return RunState.DONE, ""
    if record is not None and record.reason == "skipped":
        return RunState.CANCELLED, "skipped"
    if record is not None and record.reason in ("setup", "allocation", "preflight", "stalled"):
        return RunState.FAILED, record.reason
    if said is not None and said in CAUSES:
        return RunState(said.value), ""
    if record is None:
        return _without_record(facts, evidence, seen, now)
    if said is JobState.pending:
        return RunState.PENDING, "requeued"
    if record.reason == "terminated":
        return _terminated(facts, evidence, seen, now)
    first = record.first_failure
    if facts.outside or _ended(said) or (first is not None and 0 < record.code < 128):
        return RunState.FAILED, ""
    return (RunState.FAILED, "") if _waited(facts, record, seen, now) else (RunState.ENDING, "")


def _waited(facts: Facts, record: Exit, seen: Seen, now: float) -> bool:
    """Whether a record has waited long enough for the scheduler to say why; longer when it cannot be asked.

    The wait begins anew with a new answer: a job that was queued again runs before it has written its start.
    """
    patience = PATIENCE if seen.asked_at == 0 or seen.error else SETTLE + facts.vanish
    return now - max(record.ended, seen.since) >= patience


def _terminated(facts: Facts, evidence: Evidence, seen: Seen, now: float) -> tuple[RunState, str]:
    record = evidence.exit
    assert record is not None
    said = seen.job.state if seen.job else None
    gone = said is None and seen.asked_at > 0
    waited = _waited(facts, record, seen, now)
    if not (facts.outside or _ended(said) or gone or waited):
        return (RunState.PENDING, "requeued") if evidence.asked_requeue else (RunState.ENDING, "")
    if gone and not waited and not facts.outside and now - seen.since < SETTLE:
        return RunState.ENDING, ""
    if facts.cancel_asked:
        return RunState.CANCELLED, ""
    if evidence.told_limit and not evidence.asked_requeue:
        return RunState.TIMEOUT, "told of it"
    return RunState.TERMINATED, ""


def _without_record(facts: Facts, evidence: Evidence, seen: Seen, now: float) -> tuple[RunState, str]:
    job = seen.job
    started = evidence.started is not None
    if job is None:
        going = RunState.RUNNING if started else RunState.PENDING
        if seen.asked_at == 0 or seen.error:
            return going, "not asked"
        waited = now - seen.since
        if facts.cancel_asked and waited >= SETTLE:
            return RunState.CANCELLED, ""
        return (RunState.UNKNOWN, "vanished") if waited >= facts.vanish else (going, "not listed")
    if job.state.ended:
        if facts.hand:
            return RunState(job.state.value), "of the scheduler"
        if now - seen.since < SETTLE:
            return RunState.ENDING, ""
        if facts.cancel_asked:
            return RunState.CANCELLED, ""
        return RunState.FAILED, "no record" if started or evidence.owner else "never began"
    if job.state is JobState.running:
        return RunState.RUNNING, "" if started else "starting"
    if job.state is JobState.unknown and started:
        return RunState.RUNNING, ""  # listed, in a state that Maple does not know
    return RunState.PENDING, "requeued" if evidence.attempt else ""


def _ended(said: JobState | None) -> bool:
    return said is not None and said.ended


def to_dict(value: Exit | None) -> dict[str, Any] | None:
    """An exit record as JSON values."""
    from dataclasses import asdict

    return None if value is None else asdict(value)
