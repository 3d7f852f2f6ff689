"""``maple cancel``: end runs."""

from __future__ import annotations

from typing import Annotated

import typer

from maple_parsl.cli.options import Json


def command(
    run_ids: Annotated[list[str], typer.Argument(metavar="ID", help="Runs, by id or the beginning of one.")],
    json: Json = False,
) -> int:
    """End runs, or all of a sweep or chain; one that has ended already stays as it is."""
    from maple_parsl.runs.group import Group
    from maple_parsl.runs.run import Run
    from maple_parsl.runs.store import Store

    store = Store()
    # All names are right before anything ends.
    grouped = {name for name in run_ids if name not in store.ids() and store.members(name)[1]}
    groups = [Group.open(name, store) for name in run_ids if name in grouped]
    found = [Run.open(name, store) for name in run_ids if name not in grouped]
    for group in groups:
        group.cancel()
    statuses = [run.cancel() for run in found] + [run.status() for group in groups for run in group.runs]
    if json:
        from maple_parsl.cli.output import emit_json

        emit_json({"runs": [{"run": s.id, "job_id": s.job_id, "state": s.state.value} for s in statuses]})
        return 0
    for status in statuses:
        what = status.state.value if status.state.final else "told to end"
        print(f"run {status.id} (job {status.job_id}): {what}")
    return 0
