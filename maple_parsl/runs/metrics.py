"""The training's own figures, from ``metrics.jsonl`` in the run directory: one JSON object a line."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maple_parsl.runs import files

_TAIL = 1 << 20


@dataclass(frozen=True)
class Metrics:
    """What the lines add up to.

    Attributes:
        steps: the latest step. first_loss, last_loss: of all attempts together.
        samples_per_s: median over the steps read, samples per second of the whole job.
        checkpoint: the latest checkpoint's path. resumed_from: the checkpoint the latest start resumed from.
    """

    steps: int | None = None
    first_loss: float | None = None
    last_loss: float | None = None
    samples_per_s: float | None = None
    checkpoint: str | None = None
    resumed_from: str | None = None


@dataclass(frozen=True)
class Point:
    """One step: its loss, and samples per second of the whole job where the program said so."""

    step: int
    loss: float
    samples_per_s: float | None


def points(run_dir: Path) -> list[Point]:
    """Every step read, in order; of a step trained twice, after a restart, the later one."""
    found: dict[int, Point] = {}
    for row in _rows(run_dir / "metrics.jsonl"):
        step, loss = _number(row.get("step")), _number(row.get("loss"))
        if step is not None and loss is not None:
            found[int(step)] = Point(int(step), loss, _number(row.get("samples_per_s")))
    return [found[step] for step in sorted(found)]


def read(run_dir: Path) -> Metrics | None:
    """The figures so far; None when the program wrote none. Damaged lines are passed over."""
    rows = _rows(run_dir / "metrics.jsonl")
    if not rows:
        return None
    steps = [row for row in rows if _number(row.get("loss")) is not None and _number(row.get("step")) is not None]
    starts = [row for row in rows if row.get("event") == "start"]
    rates = sorted(rate for row in steps if (rate := _number(row.get("samples_per_s"))) is not None)
    saved = [row["path"] for row in rows if row.get("event") == "checkpoint" and isinstance(row.get("path"), str)]
    resumed = starts[-1].get("resumed_from") if starts else None
    return Metrics(
        steps=int(steps[-1]["step"]) if steps else None,
        first_loss=_number(steps[0]["loss"]) if steps else None,
        last_loss=_number(steps[-1]["loss"]) if steps else None,
        samples_per_s=rates[len(rates) // 2] if rates else None,
        checkpoint=saved[-1] if saved else None,
        resumed_from=resumed if isinstance(resumed, str) else None,
    )


def _rows(path: Path) -> list[dict[str, Any]]:
    """The first and the last MiB of the file."""
    try:
        with files.open_regular(path) as file:
            data = file.read(_TAIL)
            size = file.seek(0, 2)
            if size > 2 * _TAIL:
                file.seek(size - _TAIL)
                data += b"\n" + file.read().partition(b"\n")[2]
            elif size > _TAIL:
                file.seek(_TAIL)
                data += file.read()
    except OSError:
        return []
    rows = []
    for line in data.split(b"\n"):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            rows.append(row)
    return rows


def _number(value: Any) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None
