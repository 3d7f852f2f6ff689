"""``maple report``: a run as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maple_parsl.cli.options import RunId


def command(
    run_id: RunId,
    out: Annotated[Path | None, typer.Option("--out", help="The file; default ID.html here.")] = None,
) -> int:
    """Write a run as one HTML page that needs no network: ranks, script, timeline, curves, cause."""
    from maple_parsl.cli.output import clean
    from maple_parsl.report import report
    from maple_parsl.runs import files
    from maple_parsl.runs.run import Run

    run = Run.open(run_id)
    path = (out or Path(f"{run.id}.html")).absolute()
    files.write(path, report(run))
    print(clean(str(path)))
    return 0
