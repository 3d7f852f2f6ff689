"""``maple launch-line``: the launcher's command alone, for a script of one's own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from maple_parsl.cli.options import Json, LaunchCommand, launch_options

if TYPE_CHECKING:
    from maple_parsl.request import Request

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command("launch-line", cls=LaunchCommand)
@launch_options
def command(request: Request, json: Json = False) -> int:
    """Print only the launcher's command, with what it needs, to put into a job script of yours."""
    import maple_parsl.api as api
    from maple_parsl.cli.output import clean, emit_json
    from maple_parsl.script.launch_line import launch_line

    plan = api.plan(request=request)
    text = launch_line(plan)
    if json:
        emit_json({"launch_line": text, "site": plan.site, "nodes": plan.shape.nodes})
        return 0
    sys.stdout.write(text + "\n")
    for finding in plan.findings:
        if finding.severity != "note":
            sys.stderr.write(clean(f"{finding.severity}: {finding.message}\n"))
    return 0
