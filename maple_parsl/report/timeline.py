"""What happened to a run, in order: submissions, starts, attempts, the end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from maple_parsl.errors import StoreError
from maple_parsl.runs import files
from maple_parsl.runs.evidence import Exit, as_exit, gather
from maple_parsl.runs.outcome import duration
from maple_parsl.runs.run import Run
from maple_parsl.runs.words import code, failure


@dataclass(frozen=True)
class Event:
    """One moment (seconds since 1970) and what happened; ``bad`` where it went wrong."""

    at: float
    what: str
    bad: bool = False


def timeline(run: Run) -> list[Event]:
    """All events known, the earliest first. What was cleaned away is missing, not guessed.

    A job notes whole seconds, so within a second the order is that of their making.
    """
    found = [Event(run.summary.created, "planned and recorded"), *_submissions(run), *_attempts(run)]
    return sorted((event for event in found if event.at > 0), key=lambda event: int(event.at))


def _submissions(run: Run) -> Iterator[Event]:
    for number in range(1, run.entry.submissions() + 1):
        again = f" (submission {number})" if number > 1 else ""
        intent = run.entry.read(f"intent.{number}.json") or {}
        sent = run.entry.read(f"submitted.{number}.json")
        refused = run.entry.read(f"refused.{number}.json")
        at = _at(intent)
        if sent is not None:
            yield Event(at, f"submitted{again} as job {sent.get('job_id')}")
        elif refused is not None:
            yield Event(at, f"refused{again} by the scheduler: {refused.get('message', '')}", bad=True)
        else:
            yield Event(at, f"submission begun{again}")
    if cancelled := run.entry.read("cancelled.json"):
        yield Event(_at(cancelled), "somebody asked for the end of the run", bad=True)


def _at(raw: dict[str, object]) -> float:
    at = raw.get("at")
    return float(at) if isinstance(at, int | float) else 0.0


def _attempts(run: Run) -> Iterator[Event]:
    evidence = gather(run.files)
    ended = [record for number in _numbers(run) if (record := _record(run, number)) is not None]
    ended += [record for record in (evidence.earlier, evidence.exit) if record is not None]
    seen: set[int] = set()
    for record in ended:
        if record.attempt in seen:
            continue
        seen.add(record.attempt)
        where = f" on {record.hosts}" if record.hosts else ""
        yield Event(record.started, f"attempt {record.attempt} started, job {record.job_id}{where}")
        yield from _end(record)
    started = evidence.started
    if started is not None and started.attempt not in seen:
        yield Event(started.started, f"attempt {started.attempt} started, job {started.job_id} on {started.host}")


def _end(record: Exit) -> Iterator[Event]:
    first = record.first_failure
    if first is not None:
        yield Event(_at(first) or record.ended, failure(first), bad=True)
    how = "ended " + code(record.code).removeprefix("ended ")
    took = duration(record.ended - record.started)
    text = f"attempt {record.attempt} {how} ({record.reason}) after {took}"
    yield Event(record.ended, text, bad=record.reason != "done")


def _numbers(run: Run) -> list[int]:
    try:
        return sorted(int(name) for name in os.listdir(run.files / "attempts") if name.isdecimal())
    except OSError:
        return []


def _record(run: Run, number: int) -> Exit | None:
    try:
        return as_exit(files.read(run.files / "attempts" / str(number) / "exit.json"))
    except StoreError:
        return None
