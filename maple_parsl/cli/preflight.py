"""``maple preflight``: try a launch in an allocation, without the training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from maple_parsl.cli.options import (
    DryRun,
    Follow,
    Json,
    LaunchCommand,
    MaxNodeHours,
    RunRoot,
    Wait,
    Yes,
    launch_options,
)

if TYPE_CHECKING:
    from maple_parsl.request import Request

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=LaunchCommand)
@launch_options
def preflight(
    request: Request,
    yes: Yes = False,
    max_node_hours: MaxNodeHours = None,
    here: Annotated[bool, typer.Option("--here", help="Inside the allocation this shell is in.")] = False,
    dry_run: DryRun = False,
    run_root: RunRoot = None,
    wait: Wait = None,
    follow: Follow = False,
    json: Json = False,
) -> int:
    """Submit only the test of a launch: devices, cores, meeting, one small step.

    Without --walltime, 10 minutes are asked for; the test itself takes one. Exit code 10 with --wait or --follow: it
    found that the launch cannot train.
    """
    from maple_parsl.cli.run import launch

    return launch(
        request.model_copy(update={"preflight": "only"}),
        json=json,
        wait=wait,
        follow=follow,
        dry_run=dry_run,
        yes=yes,
        max_node_hours=max_node_hours,
        here=here,
        run_root=run_root,
    )
