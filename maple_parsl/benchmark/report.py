"""Results as JSON and as a page: accuracy by site, family, paradigm and phrasing, times, and every miss."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from maple_parsl.benchmark.cases import BenchCase
from maple_parsl.benchmark.run import Result

_GROUPS: dict[str, Callable[[BenchCase], str]] = {
    "site": lambda case: case.site,
    "family": lambda case: case.family,
    "paradigm": lambda case: case.paradigm,
    "phrasing": lambda case: case.phrasing,
}


def report(results: Sequence[Result], *, seed: int, command: str, answer: str, wall_seconds: float) -> dict[str, Any]:
    """Everything of one run, as JSON."""
    plans = [result.plan_seconds for result in results]
    judged = [result.judge_seconds for result in results if result.judge_seconds]
    return {
        "format": 1,
        "command": command,
        "seed": seed,
        "answer": answer,
        "cases": len(results),
        "right": sum(result.right for result in results),
        "accuracy": _share(results),
        "by": {name: _by(results, key) for name, key in _GROUPS.items()},
        "seconds": {
            "wall": round(wall_seconds, 1),
            "plans": round(sum(plans), 2),
            "plan_median": round(statistics.median(plans), 5) if plans else None,
            "judge_median": round(statistics.median(judged), 3) if judged else None,
        },
        "misses": [
            {"id": result.case.id, "text": result.case.text, "faults": list(result.faults)}
            for result in results
            if not result.right
        ],
    }


def _share(results: Sequence[Result]) -> float:
    return round(sum(result.right for result in results) / len(results), 4) if results else 0.0


def _by(results: Sequence[Result], key: Callable[[BenchCase], str]) -> dict[str, dict[str, Any]]:
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(key(result.case), []).append(result)
    return {
        name: {"cases": len(group), "right": sum(result.right for result in group), "accuracy": _share(group)}
        for name, group in groups.items()
    }


def text(made: dict[str, Any]) -> str:
    """A report for a person."""
    lines = [
        f"{made['right']} of {made['cases']} right ({made['accuracy']:.1%}), from {made['answer']}, seed {made['seed']}"
    ]
    for name, groups in made["by"].items():
        shown = ", ".join(f"{key} {group['right']}/{group['cases']}" for key, group in groups.items())
        lines.append(f"  by {name}: {shown}")
    seconds = made["seconds"]
    lines.append(f"  plans {seconds['plans']} s in all, wall {seconds['wall']} s")
    lines += [f"  {miss['id']}: {'; '.join(miss['faults'][:3])}" for miss in made["misses"]]
    return "\n".join(lines) + "\n"
