"""What a job left in its run directory: claim, start, end. Read from files, no scheduler is asked."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maple_parsl.errors import StoreError
from maple_parsl.runs import files


@dataclass(frozen=True)
class Started:
    """The latest start. ``started``: seconds since 1970."""

    job_id: str
    attempt: int
    host: str
    started: float


@dataclass(frozen=True)
class Exit:
    """The exit record of an attempt.

    Attributes:
        code: the exit code; the first failing process's own where one is known.
        reason: ``done``, ``failed``, ``terminated`` (by a signal), ``setup``, ``allocation``, ``preflight``,
            ``stalled`` or ``skipped`` (a job of a chain that had nothing left to do).
        preflight: the verdict on the launch, with its findings, where one was given.
        watchdog: what stood still, and the slowest rank, where a watchdog spoke.
        first_failure: rank, local_rank, node_rank, host, code and time of the process that failed first.
        hosts: the scheduler's host list.
    """

    job_id: str
    attempt: int
    code: int
    reason: str
    signal: int | None
    first_failure: dict[str, Any] | None
    started: float
    ended: float
    hosts: str
    preflight: dict[str, Any] | None = None
    watchdog: dict[str, Any] | None = None


@dataclass(frozen=True)
class Evidence:
    """Everything the run directory says.

    Attributes:
        present: the run directory exists (file systems purge old ones).
        owner: the job that claimed the run.
        exit: the exit record of the latest attempt; earlier attempts are not the outcome.
        earlier: the exit record of an attempt before the latest.
        told_limit: the job was told that its walltime is near. asked_requeue: it asked to be queued again.
        preflight: the verdict on the launch of the latest attempt, also while that runs. watchdog: its report.
        notes: files that cannot be read.
    """

    present: bool = True
    owner: str | None = None
    started: Started | None = None
    exit: Exit | None = None
    earlier: Exit | None = None
    told_limit: bool = False
    asked_requeue: bool = False
    preflight: dict[str, Any] | None = None
    watchdog: dict[str, Any] | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def attempt(self) -> int:
        """The latest attempt, 0 before the first start."""
        return self.started.attempt if self.started else self.exit.attempt if self.exit else 0


def gather(run_dir: Path) -> Evidence:
    """Read a run directory; never raises: what cannot be read is noted."""
    if not run_dir.is_dir():
        return Evidence(present=False)
    notes: list[str] = []
    # The exit record is read last: what it describes is then at least as new as the rest.
    owner = _owner(run_dir / "claim")
    started = _started(_read(run_dir / "started.json", notes))
    last = as_exit(_read(run_dir / "exit.json", notes))
    attempt = started.attempt if started else last.attempt if last else 0
    earlier = None
    if last is not None and last.attempt < attempt:
        last, earlier = None, last
    if last is None and earlier is None and attempt > 1:
        earlier = as_exit(_read(run_dir / "attempts" / str(attempt - 1) / "exit.json", notes))
    marks = run_dir / "attempts" / str(attempt)
    return Evidence(
        owner=owner,
        started=started,
        exit=last,
        earlier=earlier,
        told_limit=(marks / "limit").exists(),
        asked_requeue=(marks / "requeued").exists(),
        preflight=_read(marks / "verdict.json", notes) if attempt else None,
        watchdog=_read(marks / "stalled.json", notes) if attempt else None,
        notes=tuple(notes),
    )


def _owner(link: Path) -> str | None:
    try:
        return os.readlink(link) or None
    except OSError:
        return None


def _read(path: Path, notes: list[str]) -> dict[str, Any] | None:
    try:
        return files.read(path)
    except StoreError as error:
        notes.append(str(error))
        return None


def _started(raw: dict[str, Any] | None) -> Started | None:
    try:
        if raw is None:
            return None
        return Started(str(raw["job_id"]), int(raw["attempt"]), str(raw["host"]), float(raw["started"]))
    except (KeyError, TypeError, ValueError):
        return None


def as_exit(raw: dict[str, Any] | None) -> Exit | None:
    """The exit record in a file's object; None for what is none."""
    if raw is None:
        return None
    first, signal, verdict = raw.get("first_failure"), raw.get("signal"), raw.get("preflight")
    stalled = raw.get("watchdog")
    try:
        return Exit(
            job_id=str(raw["job_id"]),
            attempt=int(raw["attempt"]),
            code=int(raw["code"]),
            reason=str(raw["reason"]),
            signal=int(signal) if signal is not None else None,
            first_failure=first if isinstance(first, dict) else None,
            started=float(raw["started"]),
            ended=float(raw["ended"]),
            hosts=str(raw.get("hosts", "")),
            preflight=verdict if isinstance(verdict, dict) else None,
            watchdog=stalled if isinstance(stalled, dict) else None,
        )
    except (KeyError, TypeError, ValueError):
        return None
