"""What became of a submission whose end was not recorded: the client died, or the scheduler did not answer.

Evidence, the surest first: the claim in the run directory, a submission command still running on this machine,
the scheduler's list of jobs of exactly this name. Only when all are silent, and the submission can no longer
be on its way, there is no job. Nothing is ever submitted here.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from maple_parsl.errors import MapleError
from maple_parsl.runs import process, submit
from maple_parsl.runs.evidence import Evidence
from maple_parsl.runs.state import RunState
from maple_parsl.runs.store import Entry, Summary
from maple_parsl.schedulers.base import JobInfo, Scheduler

GRACE_HERE = 10.0
"""Seconds after a submission, on the machine that sent it, before an absent job is believed absent."""
GRACE_ELSEWHERE = 300.0
"""The same where the sender cannot be seen: longer than any submission command is given."""

WITHOUT_INTENT = 60.0
"""Seconds that a client may take from recording a run to recording that it submits it."""


@runtime_checkable
class Withdrawing(Protocol):
    """A scheduler that a submission may reach long after it was sent."""

    def withdraw(self, name: str) -> bool:
        """See :meth:`maple_parsl.runs.away.scheduler.AwayScheduler.withdraw`."""


@dataclass(frozen=True)
class Submission:
    """How the latest submission stands.

    Attributes:
        number: which one, 0 when none was begun.
        state: submitting, not_submitted or refused; None when there is a job.
    """

    number: int
    state: RunState | None
    job_id: str | None = None
    refusal: str | None = None
    error: str | None = None
    process: dict[str, Any] | None = None


class Recovery:
    """Looks into submissions; asks the scheduler for a name at most every ``seconds``."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._asked: dict[str, tuple[float, list[JobInfo]]] = {}

    def submission(
        self,
        entry: Entry,
        summary: Summary,
        evidence: Evidence,
        scheduler: Scheduler | None,
        now: float | None = None,
    ) -> Submission:
        """How the latest submission of a run stands; a job that is found is recorded.

        Raises:
            StoreError: a record cannot be read.
        """
        now = time.time() if now is None else now
        number = entry.submissions()
        if number == 0:
            # Without an intent nothing was sent; the client may be about to, unless it is gone.
            going = process.alive(dict(summary.process)) if summary.process else False
            waiting = going is not False and 0 <= now - summary.created < WITHOUT_INTENT
            return Submission(0, RunState.SUBMITTING if waiting else RunState.NOT_SUBMITTED)
        sent = entry.read(f"submitted.{number}.json")
        if sent is not None:
            return Submission(number, None, str(sent.get("job_id")), process=sent.get("process"))
        if evidence.owner is not None:
            submit.record(entry, number, evidence.owner, "claim")
            return Submission(number, None, evidence.owner)
        if refused := entry.read(f"refused.{number}.json"):
            return Submission(number, RunState.REFUSED, refusal=str(refused.get("message", "")))
        if entry.read(f"absent.{number}.json") is not None:
            return Submission(number, RunState.NOT_SUBMITTED)
        intent = entry.read(f"intent.{number}.json") or {}
        return self._look(entry, number, intent, scheduler, now, summary.element)

    def _look(
        self,
        entry: Entry,
        number: int,
        intent: dict[str, Any],
        scheduler: Scheduler | None,
        now: float,
        element: int | None,
    ) -> Submission:
        going = Submission(number, RunState.SUBMITTING)
        at, who = intent.get("at"), intent.get("process")
        age = now - at if isinstance(at, int | float) and at <= now else 0.0
        sender = who if isinstance(who, dict) else {}
        near = process.same_machine(sender)
        if near and process.alive(sender) and age < GRACE_ELSEWHERE:
            return going  # at it this moment
        if near and process.sender_of(entry.id) is not None:
            return going
        if scheduler is None:
            return going
        name = str(intent.get("job_name") or f"maple-{entry.id}")
        asked, jobs = self._asked.get(name, (0.0, []))
        fresh = now - asked < self.seconds
        if fresh and not jobs:
            return going
        if not fresh:
            try:
                jobs = scheduler.find([name]).get(name, [])
            except MapleError as error:
                self._asked[name] = now, []
                return Submission(number, RunState.SUBMITTING, error=str(error))
            self._asked[name] = now, jobs  # the elements of an array share the answer
        if jobs:
            job = _the_one(jobs)
            job_id = job.job_id if element is None else submit.element_of(job.job_id, element)
            # Elements of one array are no second submission.
            others = [j.job_id for j in jobs if j is not job] if element is None else []
            submit.record(entry, number, job_id, "name", others=others)
            return Submission(number, None, job_id)
        if age < (GRACE_HERE if near else GRACE_ELSEWHERE):
            return going
        if isinstance(scheduler, Withdrawing):
            try:
                if not scheduler.withdraw(name):  # it arrived this moment
                    return going
            except MapleError as error:
                return Submission(number, RunState.SUBMITTING, error=str(error))
        entry.create(f"absent.{number}.json", {"at": now, "job_name": name})
        return Submission(number, RunState.NOT_SUBMITTED)


def _the_one(jobs: list[JobInfo]) -> JobInfo:
    """Of several jobs of one name: one that has not ended, else the first. The claim overrules this later."""
    return next((job for job in jobs if not job.state.ended), jobs[0])
