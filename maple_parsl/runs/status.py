"""Where a run stands, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from maple_parsl.runs.state import RunState


@dataclass(frozen=True)
class Status:
    """Where a run stands.

    Attributes:
        explanation: why, in plain words. reason: the scheduler's own word.
        never: the job can never start as it stands. start_estimate: seconds since 1970.
        exit: the exit record of the latest attempt.
        asked_at: when the scheduler was last asked, seconds since 1970; None when it was not.
        preflight: the verdict on the launch, with its findings; None where none was given.
        watchdog: what its watchdog reported; None while all goes on.
        notes: files that could not be read.
        restarts: what was decided about starting it again, in words.
    """

    id: str
    state: RunState
    job_id: str | None
    site: str
    title: str
    attempt: int
    explanation: str
    reason: str | None
    scheduler_state: str | None
    never: bool
    start_estimate: float | None
    hosts: str
    exit: dict[str, Any] | None
    asked_at: float | None
    run_dir: str
    preflight: dict[str, Any] | None = None
    watchdog: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()
    restarts: tuple[str, ...] = ()
