"""Asking a scheduler politely: one question for all runs of a user at a site, rarely, shared by all processes.

The answers of the latest question are kept in the store: ``poll/<site>.json``. Whoever wants to ask first
creates ``poll/<site>.turn.<n>`` exclusively, with n one above the highest there is, and only when the highest
is old enough. So of many processes one asks; the others read its answer.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maple_parsl.errors import MapleError, StoreError
from maple_parsl.runs import files
from maple_parsl.runs.jobs import from_json, to_json
from maple_parsl.runs.state import Seen
from maple_parsl.schedulers.base import Scheduler, listed

SLOWEST = 300.0
"""Seconds between questions at most, unless the site's own interval is longer."""
_GROWTH = 1.5
_KEPT_TURNS = 3


def interval(poll_seconds: float, environ: Mapping[str, str] | None = None) -> float:
    """Seconds between questions at least; MAPLE_POLL_SECONDS replaces the site's fact (for test clusters)."""
    stated = (os.environ if environ is None else environ).get("MAPLE_POLL_SECONDS", "")
    with contextlib.suppress(ValueError):
        if math.isfinite(seconds := float(stated)):
            return max(0.05, seconds)
    return float(poll_seconds)


@dataclass(frozen=True)
class _Answers:
    """The latest answers: per job id, when, since when; how often nothing had changed; the latest error."""

    jobs: Mapping[str, Seen]
    asked_at: float = 0.0
    unchanged: int = 0
    error: str | None = None


class Poller:
    """The questions to one site's scheduler.

    Args:
        root: the store's folder. site: names the file of answers.
        seconds: least time between two questions.
        active: the ids of all jobs to ask about, whoever runs them.
        scheduler: called when a question is due.
    """

    def __init__(
        self,
        root: Path,
        site: str,
        seconds: float,
        active: Callable[[], Collection[str]],
        scheduler: Callable[[], Scheduler],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder = root / "poll"
        self.name = re.sub(r"[^A-Za-z0-9._-]", "_", site)
        self.seconds = seconds
        self._active, self._scheduler, self._clock = active, scheduler, clock
        self._answers = _Answers({})
        self._stamp: tuple[int, int] | None = None
        self._looked = 0.0
        self._lock = threading.Lock()

    def seen(self, job_id: str) -> Seen:
        """The latest answer about a job; asks first when a question is due. Never raises."""
        with self._lock:
            self._refresh(job_id)
            found = self._answers.jobs.get(job_id, Seen())
            return Seen(found.job, found.asked_at, found.since, self._answers.error)

    def _refresh(self, job_id: str) -> None:
        now = self._clock()
        if now - self._looked < min(1.0, self.seconds / 4):
            return
        self._looked = now
        try:
            self._load()
            if self._due(now, job_id) and self._take_turn(now):
                self._ask(now)
        except StoreError as error:  # answers cannot be shared: say so rather than ask more often
            self._answers = _Answers(self._answers.jobs, self._answers.asked_at, 0, str(error))

    def _due(self, now: float, job_id: str) -> bool:
        answers = self._answers
        known = answers.jobs.get(job_id)
        calm = answers.unchanged if known is not None else 0  # a job nobody asked about yet need not wait long
        wait = min(self.seconds * _GROWTH**calm, max(SLOWEST, self.seconds))
        return not 0 <= now - answers.asked_at < wait

    def _take_turn(self, now: float) -> bool:
        files.make_folder(self.folder)
        turns = self._turns()
        if turns:
            latest = files.read(self.folder / f"{self.name}.turn.{turns[-1]}") or {}
            at = latest.get("at")
            if isinstance(at, int | float) and 0 <= now - at < self.seconds:
                return False
        mine = turns[-1] + 1 if turns else 1
        if not files.create(self.folder / f"{self.name}.turn.{mine}", {"at": now}):
            return False
        for old in turns[:-_KEPT_TURNS]:
            with contextlib.suppress(OSError):
                os.unlink(self.folder / f"{self.name}.turn.{old}")
        return self._turns()[-1:] == [mine]

    def _turns(self) -> list[int]:
        start = f"{self.name}.turn."
        try:
            names = os.listdir(self.folder)
        except OSError as error:
            raise files.explained(self.folder, error, "read") from None
        return sorted(int(n[len(start) :]) for n in names if n.startswith(start) and n[len(start) :].isdecimal())

    def _ask(self, now: float) -> None:
        wanted = list(dict.fromkeys(self._active()))
        before = self._answers
        if not wanted:
            self._keep(_Answers({}, now, before.unchanged + 1))
            return
        try:
            found = self._scheduler().query(wanted)
        except MapleError as error:
            self._keep(_Answers(before.jobs, now, before.unchanged + 1, str(error)))
            return
        jobs: dict[str, Seen] = {}
        changed = False
        for job_id in wanted:
            info = found.get(job_id)
            job = info if listed(info) else None
            old = before.jobs.get(job_id)
            same = old is not None and (old.job and old.job.state) == (job and job.state)
            changed = changed or not same
            jobs[job_id] = Seen(job, now, old.since if old is not None and same else now)
        self._keep(_Answers(jobs, now, 0 if changed else before.unchanged + 1))

    def _keep(self, answers: _Answers) -> None:
        self._answers = answers
        jobs = {
            key: {"job": to_json(seen.job), "asked_at": seen.asked_at, "since": seen.since}
            for key, seen in answers.jobs.items()
        }
        value: dict[str, Any] = {"format": 1, "asked_at": answers.asked_at, "unchanged": answers.unchanged}
        files.write(self.folder / f"{self.name}.json", {**value, "error": answers.error, "jobs": jobs})
        self._stamp = self._stamped()

    def _load(self) -> None:
        stamp = self._stamped()
        if stamp is None or stamp == self._stamp:
            return
        try:
            raw = files.read(self.folder / f"{self.name}.json")
            if raw is not None:
                self._answers = _parsed(raw)
        except (StoreError, KeyError, TypeError, ValueError, AttributeError):
            self._answers = _Answers({})  # only answers that can be asked for again
        self._stamp = stamp

    def _stamped(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self.folder / f"{self.name}.json")
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino


def _parsed(raw: Mapping[str, Any]) -> _Answers:
    jobs = {
        str(key): Seen(from_json(value["job"]), float(value["asked_at"]), float(value["since"]))
        for key, value in raw["jobs"].items()
    }
    return _Answers(jobs, float(raw["asked_at"]), int(raw["unchanged"]), raw.get("error"))
