"""Walltime: one type for every way people write a time limit."""

from __future__ import annotations

import re
from typing import Any

from maple_parsl.errors import RequestError, shortened

_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_WORDS = re.compile(
    r"(\d+(?:\.\d+)?)\s*(days?|d|hours?|hrs?|hr|h|minutes?|mins?|min|m|seconds?|secs?|sec|s)(?![a-z])", re.I
)
_CLOCK = re.compile(r"(?:(\d+)-)?(\d+):(\d{1,2})(?::(\d{1,2}))?\Z")
_DAY_HOURS = re.compile(r"(\d+)-(\d{1,2})\Z")
_LONGEST = 366 * 86400


class Walltime(int):
    """A time limit in whole seconds (an ``int``), written as HH:MM:SS.

    Accepts ``90m``, ``2h``, ``1h30m``, ``1.5 hours``, ``02:00:00``, ``1-00:00:00``, ``1-12``. ``MM:SS`` and
    a bare number are refused: schedulers disagree on what they mean (minutes for Slurm, seconds for PBS).
    """

    @classmethod
    def parse(cls, value: object) -> Walltime:
        """Read a walltime; raises :class:`RequestError` naming the accepted forms."""
        if isinstance(value, Walltime):
            return value
        if isinstance(value, str):
            seconds = _seconds(value.strip())
            if seconds is not None and 0 < seconds <= _LONGEST:
                return cls(seconds)
        raise RequestError(
            f"walltime {shortened(repr(value), 200)} cannot be read; write it like 90m, 2h, 02:00:00 or 1-00:00:00"
            " (more than 0, at most 366 days)"
        )

    @property
    def minutes(self) -> int:
        """Whole minutes, rounded up."""
        return -(-int(self) // 60)

    @property
    def hours(self) -> float:
        return int(self) / 3600

    def __str__(self) -> str:
        return f"{self // 3600:02d}:{self % 3600 // 60:02d}:{self % 60:02d}"

    def __repr__(self) -> str:
        return f"Walltime('{self}')"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        def validate(value: object) -> Walltime:
            try:
                return cls.parse(value)
            except RequestError as error:
                raise ValueError(str(error)) from None

        return core_schema.no_info_plain_validator_function(
            validate, serialization=core_schema.plain_serializer_function_ser_schema(str)
        )


def _seconds(text: str) -> int | None:
    if match := _CLOCK.match(text):
        days, first, second, third = match.groups()
        if third is None:
            if days is None:
                return None  # 10:30 is minutes for Slurm, hours to many readers
            third = "0"
        if int(second) > 59 or int(third) > 59 or (days is not None and int(first) > 23):
            return None
        return int(days or 0) * 86400 + int(first) * 3600 + int(second) * 60 + int(third)
    if match := _DAY_HOURS.match(text):
        return int(match[1]) * 86400 + int(match[2]) * 3600 if int(match[2]) < 24 else None
    parts = _WORDS.findall(text)
    if not parts or _WORDS.sub("", text).replace("and", "").strip(" ,"):
        return None
    total = sum(float(number) * _UNITS[unit[0].lower()] for number, unit in parts)
    return round(total) if total < _LONGEST * 2 else None
