"""``maple mcp``: plan, check, diagnose and status for assistants, over standard input and output."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def mcp(
    allow_submit: Annotated[
        bool, typer.Option("--allow-submit", help="Let the assistant submit jobs, each within a cost it must state.")
    ] = False,
) -> int:
    """Serve the Model Context Protocol on standard input and output. Submission is off unless enabled here."""
    from maple_parsl.mcp_server import server

    server(allow_submit).run("stdio")
    return 0
