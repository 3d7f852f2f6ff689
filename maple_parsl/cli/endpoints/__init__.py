"""``maple endpoints``: the ways to sites elsewhere: list, check, probe, set up."""

from __future__ import annotations

from typing import Any

import typer

from maple_parsl.cli.lazy import LazyGroup

VERBS = {
    "list": ("maple_parsl.cli.endpoints.listing", "The sites that your files lead to, and whether they answer."),
    "probe": ("maple_parsl.cli.endpoints.probe", "Ask a site what it has; nothing is started there."),
    "setup": ("maple_parsl.cli.endpoints.setup", "The files of an endpoint for a site, and what to type there."),
    "login": ("maple_parsl.cli.endpoints.login", "Log in to Globus, once."),
}


class Endpoints(LazyGroup):
    verbs = VERBS


app = typer.Typer(cls=Endpoints, add_completion=False, rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def endpoints(context: typer.Context) -> Any:
    """The ways to sites elsewhere; without a verb, the list."""
    if context.invoked_subcommand is None:
        from maple_parsl.cli.endpoints.listing import show

        return show(json=False)
    return None
