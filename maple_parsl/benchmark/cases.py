"""The 567 cases: nine sites, twenty-one workloads, three phrasings."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from maple_parsl.benchmark.draw import PHRASINGS, SITES, WORKLOADS, Drawn, draw
from maple_parsl.benchmark.wording import phrase
from maple_parsl.judge.case import Case, Program

SEED = 2026


@dataclass(frozen=True)
class BenchCase:
    """A request in words, the same as fields, and the world it has to end in."""

    id: str
    site: str
    family: str
    paradigm: str
    phrasing: str
    text: str
    fields: dict[str, Any]
    expected: Case


def cases(seed: int = SEED) -> tuple[BenchCase, ...]:
    """All cases of a seed, in a fixed order."""
    drawn = [draw(site, *workload, seed) for site in SITES for workload in WORKLOADS]
    return tuple(_case(one, phrasing, seed) for one in drawn for phrasing in PHRASINGS)


def _case(drawn: Drawn, phrasing: str, seed: int) -> BenchCase:
    return BenchCase(
        id=f"{drawn.site}-{drawn.family}-{drawn.paradigm}-{phrasing}",
        site=drawn.site,
        family=drawn.family,
        paradigm=drawn.paradigm,
        phrasing=phrasing,
        text=phrase(drawn, phrasing, seed),
        fields=_fields(drawn),
        expected=_expected(drawn),
    )


def sample(every: tuple[BenchCase, ...], count: int, seed: int) -> tuple[BenchCase, ...]:
    """So many cases, spread over sites and phrasings, the same for the same seed."""
    rng = random.Random(seed)
    shuffled = sorted(every, key=lambda case: (rng.random(), case.id))
    taken: list[BenchCase] = []
    seen: dict[tuple[str, str], int] = {}
    while len(taken) < min(count, len(every)):
        rest = [case for case in shuffled if case not in taken]
        best = min(rest, key=lambda case: (seen.get(("s", case.site), 0), seen.get(("p", case.phrasing), 0)))
        taken.append(best)
        for key in (("s", best.site), ("p", best.phrasing)):
            seen[key] = seen.get(key, 0) + 1
    return tuple(taken)


def _fields(drawn: Drawn) -> dict[str, Any]:
    """The fields of a request, with only what the words state."""
    fields: dict[str, Any] = {
        "model": drawn.family,
        "paradigm": drawn.paradigm,
        "site": drawn.site,
        "nodes": drawn.nodes,
        "gpus_per_node": drawn.devices if drawn.part_of_node else None,
        "walltime": f"{drawn.minutes}m",
        "queue": drawn.queue,
        "account": drawn.account,
        "script": drawn.script,
        "args": drawn.args or None,
        "precision": drawn.precision,
        "conda": drawn.conda,
        **drawn.degrees,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _expected(drawn: Drawn) -> Case:
    if drawn.script:
        program = Program(script=drawn.script, args=drawn.args)
    else:
        args = ["--model", drawn.family, "--paradigm", drawn.paradigm]
        for name, degree in drawn.degrees.items():
            args += [f"--{name}", str(degree)]
        if drawn.precision:
            args += ["--precision", drawn.precision]
        program = Program(script="train.py", args=tuple(args), exact=False, anywhere=True)
    return Case(
        site=drawn.site,
        nodes=drawn.nodes,
        devices_per_node=drawn.devices,
        minutes=drawn.minutes,
        account=drawn.account,
        queue=drawn.queue,
        program=program,
        conda=drawn.conda,
    )
