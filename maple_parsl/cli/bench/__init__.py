"""``maple bench``: measurements of Maple itself."""

from __future__ import annotations

import typer

from maple_parsl.cli.lazy import LazyGroup


class Bench(LazyGroup):
    """The benchmarks by name."""

    verbs = {
        "launch": ("maple_parsl.cli.bench.launch", "567 requests on nine sites, planned and judged by execution."),
    }


app = typer.Typer(
    cls=Bench, add_completion=False, rich_markup_mode=None, no_args_is_help=True, help="Measure Maple: launch."
)


@app.callback()
def bench() -> None:
    """Measure Maple itself."""
