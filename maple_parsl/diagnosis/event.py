"""From kept lines to candidates: what each could mean, and how much it weighs as a cause."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from maple_parsl.diagnosis.digest import Digest
from maple_parsl.diagnosis.engine import Pattern
from maple_parsl.diagnosis.line import Line
from maple_parsl.diagnosis.signature import Signature
from maple_parsl.diagnosis.traceback import Found, Traceback, find_tracebacks

EXCEPTION, LAUNCHER, LOGGED, LOGGED_OVER, NETWORK, WRAPPING = 50, 38, 32, 17, 29, 14
NAMED = 31  # an exception without its traceback
_PROGRESS = re.compile(
    r"\b(?:step|iter(?:ation)?|epoch|batch)\b[ :=#\[/]{0,3}\d|\bloss[ :=]+\d|\d(?:it|s)/(?:s|it)\b", re.I
)
_LEVEL = re.compile(r"\d\d:\d\d:\d\d\S* .{0,80}\b(ERROR|CRITICAL|FATAL)\b|^\W{0,3}(ERROR|CRITICAL|FATAL)\b", re.M)
_REMOTE = ("ConnectionError", "BrokenPipeError", "ConnectionResetError", "EOFError", "RemoteError", "TimeoutError")
_ENDED = ("KeyboardInterrupt", "SystemExit", "SignalException")


@dataclass(slots=True)
class Candidate:
    """A line that may be the first cause."""

    digest: Digest
    line: Line
    weight: int
    signature: Signature | None = None
    traceback: Traceback | None = None
    time: float | None = None
    others: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.signature.id if self.signature else "exception" if self.traceback else "error-line"


@dataclass(slots=True)
class Events:
    """The candidates of all sources, and whether training steps were seen."""

    candidates: list[Candidate]
    progress: bool


class Meaning:
    """The signatures with their conditions compiled."""

    def __init__(self, signatures: Sequence[Signature], compiled: dict[str, Pattern]) -> None:
        self.signatures = signatures
        self._compiled = compiled

    def holds(self, patterns: Sequence[str], text: bytes) -> bool:
        return any(self._compiled[pattern].search(text) for pattern in patterns)


def collect(digests: Sequence[Digest], meaning: Meaning) -> Events:
    """Candidates of every source."""
    every: list[Candidate] = []
    progress = False
    for one in digests:
        found = find_tracebacks(one.lines)
        steps = [line.number for line in one.lines if one.source.kind == "log" and _is_step(line.body[:300])]
        progress = progress or bool(steps)
        every += _of_source(one, found, steps[-1] if steps else 0, meaning)
    return Events(_whole_log(every, digests, meaning), progress)


def _is_step(text: str) -> bool:
    return bool(_PROGRESS.search(text)) and not text.startswith(("srun:", "slurmstepd"))


def _of_source(one: Digest, found: Found, last_step: int, meaning: Meaning) -> list[Candidate]:
    result: list[Candidate] = []
    times = _filled_times(one.lines)
    spoken = set()
    ends = {traceback.line.number for traceback in found.finished if traceback.line}
    for line, time in zip(one.lines, times, strict=True):
        if line.number in found.code or not line.matched:
            continue
        text = line.text.encode()
        fitting = [
            meaning.signatures[owner]
            for owner in line.matched
            if owner >= 0
            and (meaning.signatures[owner].accounting or one.source.kind != "accounting")
            and not meaning.holds(meaning.signatures[owner].not_, text)
        ]
        fitting.sort(key=lambda signature: -signature.weight)
        if fitting:
            spoken.add(line.number)
            others = tuple(dict.fromkeys(s.fault_class for s in fitting[1:] if s.fault_class != fitting[0].fault_class))
            for place, signature in enumerate(fitting):
                result.append(
                    Candidate(one, line, signature.weight, signature, None, time, others if place == 0 else ())
                )
        elif -2 in line.matched and one.source.kind == "log" and _LEVEL.search(line.body[:200]):
            over = line.number < last_step
            result.append(Candidate(one, line, LOGGED_OVER if over else LOGGED, None, None, time))
        elif -4 in line.matched and one.source.kind == "log" and line.number not in ends and not _follows(line.body):
            result.append(Candidate(one, line, LOGGED_OVER if line.number < last_step else NAMED, None, None, time))
    numbers = [line.number for line in one.lines]
    by_line = {candidate.line.number: candidate for candidate in reversed(result) if candidate.signature}
    for traceback in found.finished:
        if traceback.line is None:
            continue
        number = traceback.line.number
        if number in spoken:
            by_line[number].traceback = traceback
            continue
        weight = _weight(traceback)
        if weight:
            at = times[bisect_left(numbers, number)]
            result.append(Candidate(one, traceback.line, weight, None, traceback, at))
    return result


def _follows(text: str) -> bool:
    """The exception that a line names is one of those that other failures bring."""
    return text.partition(":")[0].rpartition(".")[2] in (*_REMOTE, *_ENDED, "ChildFailedError", "CalledProcessError")


def _weight(traceback: Traceback) -> int:
    if traceback.kind.endswith("Warning"):
        return 0
    if traceback.kind in _ENDED:
        return 9
    if traceback.follows or traceback.wraps:
        return WRAPPING
    if traceback.kind in _REMOTE:
        return NETWORK
    return LAUNCHER if traceback.of_launcher else EXCEPTION


def _whole_log(every: list[Candidate], digests: Sequence[Digest], meaning: Meaning) -> list[Candidate]:
    """Drop what a signature asks of the whole log and is not so."""
    counts: dict[str, int] = {}
    for candidate in every:
        if candidate.signature:
            counts[candidate.signature.id] = counts.get(candidate.signature.id, 0) + 1
    wrong = set()
    for signature in meaning.signatures:
        if signature.id not in counts:
            continue
        if counts[signature.id] < signature.count or (
            (signature.unless and _anywhere(signature.unless, digests, meaning))
            or (signature.also and not _anywhere(signature.also, digests, meaning))
        ):
            wrong.add(signature.id)
    return [candidate for candidate in every if not candidate.signature or candidate.signature.id not in wrong]


def _anywhere(patterns: Sequence[str], digests: Sequence[Digest], meaning: Meaning) -> bool:
    return any(meaning.holds(patterns, line.text.encode()) for one in digests for line in one.lines)


def _filled_times(lines: Sequence[Line]) -> list[float | None]:
    """A line without a time has that of the line before; those at the beginning, of the first that has one."""
    filled: list[float | None] = []
    now = next((line.time for line in lines if line.time is not None), None)
    for line in lines:
        now = line.time if line.time is not None else now
        filled.append(now)
    return filled
