"""``maple bench launch``: requests on nine sites, planned and judged by execution."""

from __future__ import annotations

import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Source(StrEnum):
    """What a case hands to Maple."""

    words = "words"
    fields = "fields"


def command(
    no_model: Annotated[
        bool, typer.Option("--no-model/--with-model", help="Without a language model, or with the agents' own.")
    ] = True,
    source: Annotated[
        Source, typer.Option("--from", help="Hand over the words, or the fields they state.")
    ] = Source.words,
    sample: Annotated[int | None, typer.Option(min=1, help="Only so many cases, spread over the sites.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the cases and of the sample.")] = 2026,
    ablations: Annotated[
        bool, typer.Option("--ablations", help="Then the same with one agent left out each, and from fields.")
    ] = False,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Sandboxes side by side.")] = 2,
    out: Annotated[Path | None, typer.Option(help="Write the results to this file as JSON too.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Plan every case of the benchmark, run each script in a pretended cluster, and say how many are right.

    Exit code 0: at least 99 % are right. 1: fewer. 6: scripts cannot be contained on this system.
    """
    from maple_parsl.benchmark import cases
    from maple_parsl.benchmark.answers import ablations as left_out
    from maple_parsl.benchmark.answers import answer_named
    from maple_parsl.benchmark.report import dump, report, text
    from maple_parsl.benchmark.run import compared, run
    from maple_parsl.cli.output import clean, emit_json

    every = cases.cases(seed)
    if sample is not None:
        every = cases.sample(every, sample, seed)
    words = [f"maple bench launch --{'no' if no_model else 'with'}-model", f"--from {source.value}", f"--seed {seed}"]
    words += [f"--sample {sample}"] if sample is not None else []
    words += ["--ablations"] if ablations else []
    answer = answer_named(source.value, model=not no_model)
    started = time.perf_counter()
    results = run(every, answer, workers, _progress if sys.stderr.isatty() else None)
    wall = time.perf_counter() - started
    made = report(
        results,
        seed=seed,
        command=" ".join(words),
        answer=answer.name,
        wall_seconds=wall,
        others={each.name: compared(results, each, workers) for each in (left_out() if ablations else ())},
    )
    if out is not None:
        _save(out, dump(made))
    if json:
        emit_json(made)
    else:
        sys.stdout.write(clean(text(made)))
    return 0 if made["accuracy"] >= 0.99 else 1


def _progress(done: int) -> None:
    sys.stderr.write(f"\r{done} judged ")


def _save(out: Path, content: str) -> None:
    from maple_parsl.errors import RequestError

    try:
        out.write_text(content, encoding="utf-8")
    except OSError as error:
        raise RequestError(f"{out}: {(error.strerror or str(error)).lower()}") from None
