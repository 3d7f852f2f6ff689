"""Composing and rendering one plan, small and as large as machines get."""

from __future__ import annotations

import statistics
import time

from tests import cases
from tests.benchmarks.measure import Figure


def milliseconds(nodes: int, queue: str) -> float:
    request = cases.request("aurora", "fsdp", nodes=nodes, queue=queue)
    site, templates = cases.site("aurora"), cases.templates()
    from maple_parsl.compose import compose

    taken = []
    for _ in range(60):
        started = time.perf_counter()
        script = compose(request, site, templates).script
        taken.append(time.perf_counter() - started)
        assert script
    return statistics.median(taken) * 1e3


def figures() -> list[Figure]:
    small, large = milliseconds(2, "debug"), milliseconds(10624, "prod")
    return [
        Figure("compose and render, 2 x 12 ranks", small, 5, "ms", "warm, median of 60"),
        Figure("compose and render, 10,624 x 12 ranks", large, 5, "ms", f"{large / small:.2f} x the small one"),
    ]
