"""How figures are measured and shown."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Figure:
    """One figure: ``value`` against ``bar`` in ``unit``; details are what was measured."""

    name: str
    value: float
    bar: float
    unit: str
    details: str

    def __str__(self) -> str:
        mark = "ok" if self.value <= self.bar else "OVER"
        return f"{self.name:<58} {self.value:8.2f} {self.unit:<3} (bar {self.bar:g})  {mark:<5} {self.details}"


def paired(first: Callable[[], float], second: Callable[[], float], pairs: int) -> tuple[float, float]:
    """Medians of two measurements taken in alternating order."""
    a, b = [], []
    for turn in range(pairs):
        order = [(first, a), (second, b)] if turn % 2 == 0 else [(second, b), (first, a)]
        for measure, into in order:
            into.append(measure())
    return statistics.median(a), statistics.median(b)


@functools.cache
def _compiled() -> str:
    folder = tempfile.mkdtemp(prefix="maple-bench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def python(code: str) -> Callable[[], float]:
    """Seconds a fresh interpreter takes for the code, its modules compiled before, as an installer leaves them."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": _compiled()}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def run() -> None:
        subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)

    def measure() -> float:
        started = time.perf_counter()
        run()
        return time.perf_counter() - started

    run()

    return measure


def ratio(name: str, bar: float, ours: str, theirs: str, pairs: int) -> Figure:
    a, b = paired(python(ours), python(theirs), pairs)
    return Figure(name, a / b, bar, "x", f"{a * 1e3:.0f} ms against {b * 1e3:.0f} ms")
