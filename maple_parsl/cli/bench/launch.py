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
    no_model: Annotated[bool, typer.Option("--no-model", help="Without a language model (the default).")] = True,
    source: Annotated[
        Source, typer.Option("--from", help="Hand over the words, or the fields they state.")
    ] = Source.words,
    sample: Annotated[int | None, typer.Option(min=1, help="Only so many cases, spread over the sites.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the cases and of the sample.")] = 2026,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Sandboxes side by side.")] = 2,
    out: Annotated[Path | None, typer.Option(help="Write the results to this file as JSON too.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Plan every case of the benchmark, run each script in a pretended cluster, and say how many are right.

    Exit code 0: at least 99 % are right. 1: fewer. 6: scripts cannot be contained on this system.
    """
    from maple_parsl.benchmark import cases
    from maple_parsl.benchmark.answers import answer_named
    from maple_parsl.benchmark.report import report, text
    from maple_parsl.benchmark.run import run
    from maple_parsl.cli.output import clean, emit_json

    every = cases.cases(seed)
    if sample is not None:
        every = cases.sample(every, sample, seed)
    words = ["maple bench launch --no-model", f"--from {source.value}", f"--seed {seed}"]
    words += [f"--sample {sample}"] if sample is not None else []
    started = time.perf_counter()
    results = run(every, answer_named(source.value), workers, _progress if sys.stderr.isatty() else None)
    made = report(
        results,
        seed=seed,
        command=" ".join(words),
        answer=source.value,
        wall_seconds=time.perf_counter() - started,
    )
    if out is not None:
        _save(out, made)
    if json:
        emit_json(made)
    else:
        sys.stdout.write(clean(text(made)))
    return 0 if made["accuracy"] >= 0.99 else 1


def _progress(done: int) -> None:
    sys.stderr.write(f"\r{done} judged ")


def _save(out: Path, made: object) -> None:
    import json

    from maple_parsl.errors import RequestError

    try:
        out.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise RequestError(f"{out}: {(error.strerror or str(error)).lower()}") from None
