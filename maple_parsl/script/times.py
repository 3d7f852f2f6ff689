"""Time limits as the schedulers write them, in seconds; None where the text is not one."""

from __future__ import annotations

import re

_LONGEST = 10 * 366 * 86400
_SLURM = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?\Z")
_UNLIMITED = {"unlimited", "infinite", "-1"}


def slurm_seconds(text: str) -> int | None:
    """``minutes``, ``minutes:seconds``, ``hours:minutes:seconds``, ``days-hours[:minutes[:seconds]]``."""
    match = _SLURM.match(text.strip())
    if not match:
        return None
    days, *rest = match.groups()
    numbers = [int(n) for n in rest if n is not None]
    if days is not None:
        hours, minutes, seconds = (*numbers, 0, 0)[:3]
        return _sane(int(days) * 86400 + hours * 3600 + minutes * 60 + seconds)
    if len(numbers) == 3:
        return _sane(numbers[0] * 3600 + numbers[1] * 60 + numbers[2])
    return _sane(numbers[0] * 60 + (numbers[1] if len(numbers) == 2 else 0))


def pbs_seconds(text: str) -> int | None:
    """``seconds``, ``minutes:seconds``, ``hours:minutes:seconds``."""
    parts = text.strip().split(":")
    if not 1 <= len(parts) <= 4 or not all(p.isascii() and p.isdigit() and len(p) < 10 for p in parts):
        return None
    scale = (1, 60, 3600, 86400)
    return _sane(sum(int(p) * s for p, s in zip(reversed(parts), scale, strict=False)))


def lsf_seconds(text: str) -> int | None:
    """``minutes`` or ``hours:minutes``, either with ``/host``."""
    parts = text.strip().partition("/")[0].split(":")
    if not 1 <= len(parts) <= 2 or not all(p.isascii() and p.isdigit() and len(p) < 10 for p in parts):
        return None
    return _sane(int(parts[-1]) * 60 + (int(parts[0]) * 3600 if len(parts) == 2 else 0))


def seconds(text: str, scheduler: str) -> int | None:
    """By the scheduler's own forms."""
    if text.strip().lower() in _UNLIMITED:
        return None
    reader = {"slurm": slurm_seconds, "pbs": pbs_seconds, "lsf": lsf_seconds}.get(scheduler, pbs_seconds)
    return reader(text)


def _sane(total: int) -> int | None:
    return total if total <= _LONGEST else None
