"""``maple bench``: measurements of Maple itself."""

from __future__ import annotations

import typer

from maple_parsl.cli.lazy import LazyGroup


class Bench(LazyGroup):
    verbs = {
        "launch": (
            "maple_parsl.cli.bench.launch",
            "Plan 567 requests on nine sites, and judge the scripts by execution.",
        )
    }


app = typer.Typer(cls=Bench, add_completion=False, help="Measure Maple.", no_args_is_help=True)
