"""Curves of a training as inline SVG; each point can be read by pointer, touch or arrow keys."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape

from maple_parsl.runs.metrics import Point

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 220, 60, 14, 12, 30
MOST = 600
"""Points drawn at most; of more, the lowest and highest of equal parts, so that no spike is lost."""


def thinned(values: Sequence[tuple[int, float]], most: int = MOST) -> list[tuple[int, float]]:
    """At most so many points: first and last, and the extremes of equal parts between."""
    if len(values) <= most:
        return list(values)
    kept = {0, len(values) - 1}
    parts = (most - 2) // 2
    for part in range(parts):
        inside = range(part * len(values) // parts, (part + 1) * len(values) // parts)
        kept.add(min(inside, key=lambda index: values[index][1]))
        kept.add(max(inside, key=lambda index: values[index][1]))
    return [values[index] for index in sorted(kept)][:most]


def curves(points: Sequence[Point]) -> str:
    """Loss and, where the program said it, throughput; empty without figures."""
    loss = [(point.step, point.loss) for point in points]
    rate = [(point.step, point.samples_per_s) for point in points if point.samples_per_s is not None]
    made = [_curve("loss", "", loss)] if loss else []
    return "".join([*made, _curve("throughput", "samples/s", rate)] if rate else made)


def _curve(name: str, unit: str, values: Sequence[tuple[int, float]]) -> str:
    drawn = thinned(values)
    low, high = min(y for _, y in drawn), max(y for _, y in drawn)
    first, last = drawn[0][0], drawn[-1][0]
    wide, tall = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def place(step: int, value: float) -> tuple[float, float]:
        right = (step - first) / (last - first) if last > first else 0.5
        up = (value - low) / (high - low) if high > low else 0.5
        return round(_LEFT + right * wide, 1), round(_TOP + (1 - up) * tall, 1)

    spots = [(*place(step, value), step, value) for step, value in drawn]
    path = " ".join(f"{x},{y}" for x, y, _, _ in spots)
    title = f"{name} ({unit}) by step" if unit else f"{name} by step"
    start = f"step {drawn[0][0]}: {_short(drawn[0][1])} → step {last}: {_short(drawn[-1][1])} {unit}".strip()
    levels = [high, (high + low) / 2, low] if high > low else [high]
    grid = "".join(
        f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>'
        f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{_short(level)}</text>'
        for level in levels
        for y in [place(first, level)[1]]
    )
    ends = (
        f'<text x="{_LEFT}" y="{_HEIGHT - 8}">step {first}</text>'
        f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 8}" text-anchor="end">step {last}</text>'
    )
    data = escape(json.dumps([[x, y, step, _short(value)] for x, y, step, value in spots]), quote=True)
    return (
        f'<figure class="curve" data-unit="{escape(unit)}" data-points="{data}">'
        f"<figcaption><b>{escape(title)}</b> <output>{escape(start)}</output></figcaption>"
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" tabindex="0" aria-label="{escape(title)}: {escape(start)}">'
        f'{grid}{ends}<polyline points="{path}"/><circle r="4" cx="{spots[-1][0]}" cy="{spots[-1][1]}"/></svg></figure>'
    )


def _short(value: float) -> str:
    return f"{value:.4g}"
