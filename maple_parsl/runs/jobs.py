"""A job as the scheduler described it, kept as JSON between questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from maple_parsl.schedulers.base import JobInfo, JobState

# The scheduler's verdicts that say why a job ended.
CAUSES = frozenset(
    {
        JobState.timeout,
        JobState.cancelled,
        JobState.preempted,
        JobState.node_failure,
        JobState.out_of_memory,
    }
)


def to_json(job: JobInfo | None) -> dict[str, Any] | None:
    """The answer as JSON values; nothing for a job the scheduler knows nothing of."""
    if job is None or job.state is JobState.unknown:
        return None
    return {**asdict(job), "state": job.state.value}


def from_json(raw: Mapping[str, Any] | None) -> JobInfo | None:
    """Read it back; raises TypeError, KeyError or ValueError for what is no job."""
    if raw is None:
        return None
    known = {f.name for f in fields(JobInfo)}
    return JobInfo(**{**{k: v for k, v in raw.items() if k in known}, "state": JobState(raw["state"])})
