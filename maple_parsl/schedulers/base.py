"""What every scheduler answers, in one vocabulary."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from maple_parsl.plan import Plan

Source = Literal["squeue", "sacct", "scontrol", "qstat", "process"]


class JobState(StrEnum):
    """The state of a job. Every state but ``pending``, ``running`` and ``unknown`` is final."""

    pending = "pending"
    running = "running"
    done = "done"
    failed = "failed"
    cancelled = "cancelled"
    timeout = "timeout"
    preempted = "preempted"
    node_failure = "node_failure"
    out_of_memory = "out_of_memory"
    unknown = "unknown"

    @property
    def ended(self) -> bool:
        """Whether the job will not run any more."""
        return self not in (JobState.pending, JobState.running, JobState.unknown)


@dataclass(frozen=True, slots=True)
class JobInfo:
    """What a scheduler says of one job.

    Attributes:
        job_id: as the scheduler writes it. name: the job's name, where told.
        state, raw_state: in Maple's words and in the scheduler's.
        reason: the scheduler's reason or comment, as it stands.
        explanation: what that means, in plain words.
        never: the job can never start as it is.
        exit_code, exit_signal: of the batch script, where the scheduler tells; a launcher may have hidden the
            program's own code, which is in the run's exit record.
        start_estimate: when a waiting job is expected to start, seconds since 1970.
        nodes: the hosts in the scheduler's own notation.
        restarts: how often it was started again.
        source: the command that told.
    """

    job_id: str
    state: JobState
    raw_state: str
    source: Source
    name: str | None = None
    reason: str | None = None
    explanation: str | None = None
    never: bool = False
    exit_code: int | None = None
    exit_signal: int | None = None
    start_estimate: float | None = None
    nodes: str | None = None
    restarts: int | None = None


class Scheduler(Protocol):
    """A batch system, or the processes of this machine.

    Every method raises :class:`~maple_parsl.errors.SchedulerError` where a command is missing, does not answer
    in time, or answers what cannot be read.
    """

    def submit(self, plan: Plan, script_file: Path) -> str:
        """Send the script and return the job's id.

        Raises:
            SubmissionError: the scheduler refused; no job exists.
            SchedulerError: it is not known whether a job exists; ask :meth:`find` for its name.
        """

    def query(self, job_ids: Iterable[str]) -> dict[str, JobInfo]:
        """Every id asked for, with what is known of it (``unknown`` if nothing is)."""

    def find(self, names: Iterable[str]) -> dict[str, list[JobInfo]]:
        """The user's jobs of exactly these names, ended ones too where the scheduler remembers them."""

    def cancel(self, job_id: str) -> None:
        """End the job. No error if it has ended already."""


def listed(job: JobInfo | None) -> bool:
    """Whether the scheduler said anything of a job; also where it calls its state what Maple does not know."""
    return job is not None and (job.state is not JobState.unknown or bool(job.raw_state))


def vanished(job_id: str, source: Source, explanation: str) -> JobInfo:
    """A job the scheduler says nothing of."""
    return JobInfo(job_id, JobState.unknown, "", source, explanation=explanation)


def most_telling(jobs: list[JobInfo]) -> JobInfo:
    """One answer for the elements of an array or the parts of a job: what still runs, waits or went wrong."""
    for state in (JobState.running, JobState.pending, JobState.unknown):
        for job in jobs:
            if job.state is state:
                return job
    return next((job for job in jobs if job.state is not JobState.done), jobs[0])
