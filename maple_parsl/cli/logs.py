"""``maple logs``: what a run has printed."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from maple_parsl.cli.options import RunId


def command(
    run_id: RunId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run has ended.")] = False,
    offset: Annotated[int, typer.Option(help="Byte to begin at; negative: from the end.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object: text and the next offset.")] = False,
) -> int:
    """Print the log of a run."""
    from maple_parsl.cli.output import clean, emit_json
    from maple_parsl.runs.logs import missing
    from maple_parsl.runs.run import Run

    run = Run.open(run_id)
    if json:
        part = run.logs(offset)
        emit_json({"run": run.id, "text": str(part), "offset": part.offset, "missing": missing(run.files)})
        return 0
    if follow:
        from maple_parsl.cli.follow import detached, follow_log

        try:
            follow_log(run, offset)
        except KeyboardInterrupt:
            detached(run)
            raise
        return 0
    if why := missing(run.files):
        sys.stderr.write(f"{why}\n")
        return 0
    while part := run.logs(offset):
        sys.stdout.write(clean(part) if sys.stdout.isatty() else part)
        offset = part.offset
    return 0
