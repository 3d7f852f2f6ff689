"""One line of a log: cleaned, with the rank, host and time it states."""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST = 2000
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]{0,40}[ -/]{0,10}[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]{0,10}[0-~])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffe\ufeff\udc80-\udcff]")
# What launchers put in front of each line.
_PREFIX = re.compile(
    r"\[rank ?(\d{1,7})\]:? ?|\[default(\d{1,5})\]: ?|\[(?:trainer|worker)?(\d{1,7})\]:? |\[\d+,(\d{1,7})\]<std\w+>: ?"
    r"| {0,7}(\d{1,7}): (?=\S| {2})"
)
_RANK = re.compile(r"\[rank ?(\d{1,7})\]|\brank[ =:]{1,2}(\d{1,7})\b|: task (\d{1,7}):", re.I)
_HOST = re.compile(r"slurmstepd-([\w.-]+):|srun: error: ([\w.-]+): task|\bhost[ =:]{1,3}([A-Za-z][\w.-]*)")
_MONTHS = {m: i for i, m in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}
_CLOCK = r"(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?"
_TIMES = (
    re.compile(r"\b\d{4}[-/](\d\d)[-/](\d\d)[T ]" + _CLOCK),
    re.compile(r"(?:^|\[|\s)[IWEFD](\d\d)(\d\d) " + _CLOCK),
    re.compile(r"\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}(\d{1,2}) " + _CLOCK),
    re.compile(r"\b(\d\d)/(\d\d)/\d{2,4} " + _CLOCK),
)


@dataclass(slots=True)
class Line:
    """A line; ``text`` is clean, ``body`` is the text without the launcher's prefix."""

    number: int
    text: str
    body: str
    rank: int | None
    time: float | None
    matched: tuple[int, ...] = ()


def clean(raw: bytes) -> str:
    """Text that can be shown: no control codes, broken UTF-8 replaced."""
    text = raw.decode("utf-8", "replace")
    return _CONTROL.sub("", _SEQUENCE.sub("", text))


def read_line(number: int, raw: bytes) -> Line:
    """Take a line apart."""
    text = clean(raw)
    rank = None
    body = text
    for _ in range(2):  # torchrun's in front of torch's own: the inner one is the global rank
        if prefix := _PREFIX.match(body):
            rank = int(next(group for group in prefix.groups() if group is not None))
            body = body[prefix.end() :]
    if body is text and (found := _RANK.search(text[:400])):
        rank = int(next(group for group in found.groups() if group is not None))
    return Line(number, text, body, rank, time_of(text[:200]))


def prefixed(line: Line) -> int | None:
    """The rank that a launcher's prefix states, by which interleaved tracebacks are told apart."""
    return line.rank if len(line.body) != len(line.text) else None


def host_of(text: str) -> str | None:
    found = _HOST.search(text)
    return next(group for group in found.groups() if group) if found else None


def time_of(text: str) -> float | None:
    """Seconds since the beginning of a year of 31-day months: only good for comparing."""
    if ":" not in text:
        return None
    for pattern in _TIMES:
        if found := pattern.search(text):
            month, day, hour, minute, second, fraction = found.groups()
            number = _MONTHS.get(month) or int(month)
            whole = ((number * 31 + int(day)) * 24 + int(hour)) * 3600 + int(minute) * 60 + int(second)
            return whole + float(f"0.{fraction or 0}")
    return None
