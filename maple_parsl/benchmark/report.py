"""Results as JSON and as text: accuracy by site, family, paradigm and phrasing, times, and every miss."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from maple_parsl.benchmark.cases import BenchCase
from maple_parsl.benchmark.run import Result

_GROUPS: dict[str, Callable[[BenchCase], str]] = {
    "site": lambda case: case.site,
    "family": lambda case: case.family,
    "paradigm": lambda case: case.paradigm,
    "phrasing": lambda case: case.phrasing,
}


def report(
    results: Sequence[Result],
    *,
    seed: int,
    command: str,
    answer: str,
    wall_seconds: float,
    others: Mapping[str, Sequence[Result]] | None = None,
) -> dict[str, Any]:
    """Everything of one run, as JSON.

    Args:
        others: what other answers made of the same cases, by their names.
    """
    judged = [result.judge_seconds for result in results if result.judge_seconds]
    return {
        "format": 2,
        "command": command,
        "seed": seed,
        "answer": answer,
        "cases": len(results),
        "right": sum(result.right for result in results),
        "accuracy": _share(results),
        "by": {name: _by(results, key) for name, key in _GROUPS.items()},
        "seconds": {
            "wall": round(wall_seconds, 1),
            **_plan_seconds(results),
            "judge_median": round(statistics.median(judged), 3) if judged else None,
        },
        "others": {name: _other(each, results) for name, each in (others or {}).items()},
        "misses": [
            {"id": result.case.id, "text": result.case.text, "faults": list(result.faults)}
            for result in results
            if not result.right
        ],
        "each": [
            {
                "id": result.case.id,
                "right": result.right,
                "plan_ms": round(result.made.seconds * 1000, 1),
                "plan_cpu_ms": round(result.made.cpu_seconds * 1000, 1),
                "judge_ms": round(result.judge_seconds * 1000),
            }
            for result in results
        ],
    }


def dump(made: Mapping[str, Any]) -> str:
    """The report as a file: one line a case."""
    head = json.dumps({name: value for name, value in made.items() if name != "each"}, indent=1)
    rows = ",\n".join(f"  {json.dumps(row)}" for row in made["each"])
    return f'{head[:-2]},\n "each": [\n{rows}\n ]\n}}\n'


def _plan_seconds(results: Sequence[Result]) -> dict[str, float | None]:
    every = [result.made for result in results]
    return {
        "plans": round(sum(made.seconds for made in every), 2),
        "plans_cpu": round(sum(made.cpu_seconds for made in every), 2),
        "plan_cpu_median": round(statistics.median(made.cpu_seconds for made in every), 5) if every else None,
    }


def _other(results: Sequence[Result], full: Sequence[Result]) -> dict[str, Any]:
    """Beside the run itself: how many are right, how many have the very same script, and the time they took."""
    pairs = zip(results, full, strict=True)
    return {
        "right": sum(result.right for result in results),
        "same_script": sum(one.made.script is not None and one.made.script == two.made.script for one, two in pairs),
        **_plan_seconds(results),
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
    lines.append(f"  plans {seconds['plans']} s in all, {seconds['plans_cpu']} s of one core; wall {seconds['wall']} s")
    lines += [
        f"  {name}: {other['right']} right, {other['same_script']} the same script, {other['plans_cpu']} s of one core"
        for name, other in made["others"].items()
    ]
    lines += [f"  {miss['id']}: {'; '.join(miss['faults'][:3])}" for miss in made["misses"]]
    return "\n".join(lines) + "\n"
