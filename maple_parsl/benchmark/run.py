"""Run the benchmark: scripts first, timed on one core, then judged by execution on several."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue

from maple_parsl.benchmark.answers import Answer
from maple_parsl.benchmark.cases import BenchCase
from maple_parsl.errors import MapleError
from maple_parsl.judge.judging import judge
from maple_parsl.judge.sandbox import Sandbox


@dataclass(frozen=True)
class Result:
    """One case: seconds to its script, seconds of judging, faults as ``kind: message``; empty where it is right."""

    case: BenchCase
    faults: tuple[str, ...]
    plan_seconds: float
    judge_seconds: float

    @property
    def right(self) -> bool:
        return not self.faults


def plan_all(every: Sequence[BenchCase], answer: Answer) -> list[tuple[str | None, str, float]]:
    """For each case its script or None, the reason where there is none, and the seconds it took."""
    made: list[tuple[str | None, str, float]] = []
    for case in every:
        started = time.perf_counter()
        try:
            script, reason = answer(case), ""
        except MapleError as error:
            script, reason = None, f"{type(error).__name__}: {error}"
        made.append((script, reason, time.perf_counter() - started))
    return made


def run(
    every: Sequence[BenchCase], answer: Answer, workers: int = 2, progress: Callable[[int], None] | None = None
) -> list[Result]:
    """Plan and judge every case.

    Args:
        workers: sandboxes side by side. progress: told the number of cases judged so far.

    Raises:
        SandboxError: scripts cannot be contained here, so none is run.
    """
    made = plan_all(every, answer)
    boxes: SimpleQueue[Sandbox] = SimpleQueue()
    opened = [Sandbox() for _ in range(workers)]
    for box in opened:
        boxes.put(box)

    def one(number: int) -> Result:
        script, reason, seconds = made[number]
        if script is None:
            return Result(every[number], (reason,), seconds, 0.0)
        box = boxes.get()
        started = time.perf_counter()
        try:
            verdict = judge(script, every[number].expected, box)
        finally:
            boxes.put(box)
        faults = tuple(f"{fault.kind}: {fault.message}" for fault in verdict.faults)
        return Result(every[number], faults, seconds, time.perf_counter() - started)

    results = []
    try:
        with ThreadPoolExecutor(workers) as pool:
            for result in pool.map(one, range(len(every))):
                results.append(result)
                if progress:
                    progress(len(results))
    finally:
        for box in opened:
            box.close()
    return results
