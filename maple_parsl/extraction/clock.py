"""Times as clocks and as numbers with glued units."""

from __future__ import annotations

import re

_PART = re.compile(r"(\d+(?:\.\d+)?)([a-z]*)")
_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


def seconds_of_clock(text: str) -> int | None:
    """Seconds of ``H:MM:SS``, ``D-H:MM[:SS]``; None for ``A:B``, whose meaning schedulers disagree on, and no time.

    -1: negative or not a time of day's form, so an error rather than a question.
    """
    if text.startswith("-"):
        return -1
    days, dash, clock = text.rpartition("-")
    fields = [int(field) for field in clock.split(":")]
    if any(field > 59 for field in fields[1:]):
        return -1
    if len(fields) == 2:
        if not dash:
            return None
        fields.append(0)
    return (int(days) if dash else 0) * 86400 + fields[0] * 3600 + fields[1] * 60 + fields[2]


def seconds_of_span(text: str) -> int:
    """Seconds of ``90min``, ``1h30m``, ``1.5h``, ``1h30``."""
    total, last = 0.0, "h"
    for number, unit in _PART.findall(text):
        unit = unit[:1] or {"d": "h", "h": "m", "m": "s"}.get(last, "s")
        total += float(number) * _UNITS[unit]
        last = unit
    return round(total)
