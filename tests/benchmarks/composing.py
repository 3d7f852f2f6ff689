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


def from_words() -> Figure:
    """Words to a verified plan, beside the same plan from its fields."""
    import maple_parsl
    from maple_parsl.benchmark.answers import Structured, Words
    from maple_parsl.benchmark.cases import cases as every
    from maple_parsl.benchmark.cases import sample
    from maple_parsl.benchmark.run import plan_all

    some = sample(every(), 60, 1)
    words, fields = Words(), Structured()
    assert maple_parsl.ask(some[0].text, without=("model",)).plan is not None
    plan_all(some, fields)
    taken = statistics.median(made.cpu_seconds for made in plan_all(some, words)) * 1e3
    least = statistics.median(made.cpu_seconds for made in plan_all(some, fields)) * 1e3
    return Figure("words to a verified plan", taken, 20, "ms", f"of one core, warm; {taken / least:.1f} x from fields")


def figures() -> list[Figure]:
    small, large = milliseconds(2, "debug"), milliseconds(10624, "prod")
    return [
        Figure("compose and render, 2 x 12 ranks", small, 5, "ms", "warm, median of 60"),
        Figure("compose and render, 10,624 x 12 ranks", large, 5, "ms", f"{large / small:.2f} x the small one"),
        from_words(),
    ]
