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

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Made:
    """A script or, where there is none, the reason; seconds by the clock, and of the processor."""

    script: str | None
    reason: str
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class Result:
    """One case: what was made, seconds of judging, faults as ``kind: message``; empty where it is right."""

    case: BenchCase
    made: Made
    faults: tuple[str, ...]
    judge_seconds: float

    @property
    def right(self) -> bool:
        return not self.faults


def plan_all(every: Sequence[BenchCase], answer: Answer) -> list[Made]:
    """What an answer makes of each case."""
    made = []
    for case in every:
        started, cpu = time.perf_counter(), time.process_time()
        script, reason = None, ""
        try:
            script = answer(case)
        except MapleError as error:
            reason = f"{type(error).__name__}: {error}"
        made.append(Made(script, reason, time.perf_counter() - started, time.process_time() - cpu))
    return made


def run(every: Sequence[BenchCase], answer: Answer, workers: int = 2, progress: Progress | None = None) -> list[Result]:
    """Plan and judge every case.

    Args:
        workers: sandboxes side by side. progress: told the number of cases judged so far.

    Raises:
        SandboxError: scripts cannot be contained here, so none is run.
    """
    return judge_all(every, plan_all(every, answer), workers, progress)


def judge_all(
    every: Sequence[BenchCase], made: Sequence[Made], workers: int = 2, progress: Progress | None = None
) -> list[Result]:
    """The verdict on each script that was made; a case without one is wrong."""
    boxes: SimpleQueue[Sandbox] = SimpleQueue()
    opened = [Sandbox() for _ in range(workers)]
    for box in opened:
        boxes.put(box)

    def one(number: int) -> Result:
        case, mine = every[number], made[number]
        if mine.script is None:
            return Result(case, mine, (mine.reason,), 0.0)
        box = boxes.get()
        started = time.perf_counter()
        try:
            verdict = judge(mine.script, case.expected, box)
        finally:
            boxes.put(box)
        faults = tuple(f"{fault.kind}: {fault.message}" for fault in verdict.faults)
        return Result(case, mine, faults, time.perf_counter() - started)

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


def compared(results: Sequence[Result], answer: Answer, workers: int = 2) -> list[Result]:
    """The same cases by another answer; a script that is the same to the letter has its verdict already."""
    made = plan_all([result.case for result in results], answer)
    pairs = list(zip(results, made, strict=True))
    fresh = [(result.case, mine) for result, mine in pairs if mine.script != result.made.script]
    judged = iter(judge_all([case for case, _ in fresh], [mine for _, mine in fresh], workers) if fresh else ())
    return [
        Result(result.case, mine, result.faults, 0.0) if mine.script == result.made.script else next(judged)
        for result, mine in pairs
    ]
