"""``maple cancel``: end runs."""

from __future__ import annotations

from typing import Annotated

import typer

from maple_parsl.cli.options import Json


def command(
    run_ids: Annotated[list[str], typer.Argument(metavar="ID", help="Runs, by id or the beginning of one.")],
    json: Json = False,
) -> int:
    """End runs; one that has ended already stays as it is."""
    from maple_parsl.runs.run import Run

    found = [Run.open(run_id) for run_id in run_ids]  # all names are right before anything ends
    statuses = [run.cancel() for run in found]
    if json:
        from maple_parsl.cli.output import emit_json

        emit_json({"runs": [{"run": s.id, "job_id": s.job_id, "state": s.state.value} for s in statuses]})
        return 0
    for status in statuses:
        what = status.state.value if status.state.final else "told to end"
        print(f"run {status.id} (job {status.job_id}): {what}")
    return 0
