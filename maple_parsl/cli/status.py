"""``maple status``: where runs stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from maple_parsl.cli.options import Json

if TYPE_CHECKING:
    from maple_parsl.runs.run import Run


def command(
    run_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="A run; all active ones without.")] = None,
    json: Json = False,
) -> int:
    """Where a run stands, and why; without an id: all runs that have not ended."""
    if run_id is None:
        from maple_parsl.cli.runs import list_runs

        return list_runs(everything=False, site=None, json=json)
    from maple_parsl.runs.group import Group
    from maple_parsl.runs.run import Run
    from maple_parsl.runs.store import Store

    store = Store()
    if run_id not in store.ids() and store.members(run_id)[1]:
        from maple_parsl.cli import sweep

        sweep.show(Group.open(run_id, store), json)
        return 0
    return show(Run.open(run_id, store), json)


def show(run: Run, json: bool) -> int:
    """Print one run's state."""
    status, figures = run.status(), run.metrics
    outcome = run.outcome() if status.state.final else None
    if json:
        from maple_parsl.cli.output import emit_json

        emit_json({"run": status.id, **vars(status), "metrics": figures, "outcome": outcome and outcome.to_dict()})
        return 0
    from maple_parsl.cli.output import console
    from maple_parsl.cli.show import figures as rows
    from maple_parsl.cli.show import print_status
    from maple_parsl.runs.sync import command

    print_status(console(), status, rows(figures))
    if status.state.final and (line := command(run)):
        console().print(f"to send on what was logged: {line}", markup=False, overflow="fold")
    return 0
