"""``maple top``: runs, live in the terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from maple_parsl.cli.options import Json

if TYPE_CHECKING:
    from rich.console import RenderableType

    from maple_parsl.runs.overview import Glance

_WIDE = 110  # columns from which on a run takes one row of a table


def command(
    once: Annotated[bool, typer.Option("--once", help="Print once and end; so it is where output is no terminal.")] = (
        False
    ),
    site: Annotated[str | None, typer.Option(help="Only runs at this site.")] = None,
    recent: Annotated[float, typer.Option(min=0, help="Hours for which ended runs stay listed.")] = 1.0,
    every: Annotated[float, typer.Option(min=0.5, help="Seconds between looks at the runs' files.")] = 2.0,
    json: Json = False,
) -> int:
    """Show active and recently ended runs until q or Ctrl-C; the runs go on.

    Files are looked at every few seconds; the scheduler is asked no more often than maple status asks it.
    """
    from maple_parsl.runs.overview import glances
    from maple_parsl.runs.store import Store

    store = Store()

    def look() -> list[Glance]:
        return list(glances(store, site=site, recent=recent * 3600))

    if json:
        from maple_parsl.cli.output import emit_json

        emit_json({"runs": look()})
        return 0
    from maple_parsl.cli.output import console

    screen = console()
    if once or not sys.stdout.isatty():
        screen.print(view(look(), screen.width))
        return 0
    from rich.live import Live

    from maple_parsl.cli.keys import pressed

    with Live(console=screen, screen=True, auto_refresh=False) as live, pressed() as key:
        while True:
            live.update(view(look(), screen.width, screen.height), refresh=True)
            if key(every) in ("q", "Q", "\x03"):
                return 0


def view(found: list[Glance], width: int, height: int | None = None) -> RenderableType:
    """What is shown in so many columns: a table, or below each other where it is narrow."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    from maple_parsl.cli.output import clean
    from maple_parsl.cli.runs import age
    from maple_parsl.cli.show import colour

    going = [glance for glance in found if not glance.final]
    used = sum(glance.used or 0.0 for glance in found)
    head = Text(f"{len(going)} active, {len(found) - len(going)} ended, {used:.2f} node-hours used", style="bold")
    if width >= _WIDE:
        return Group(head, _table(found))
    parts: list[RenderableType] = [head]
    for glance in found:
        line = f"{glance.run}  {glance.state}  {age(glance.created)}"
        parts.append(Text(line, style=colour(glance.state)))
        texts = (glance.title, glance.why, _figures(glance), _hours(glance))
        parts += [Padding(Text(clean(text)), (0, 0, 0, 2)) for text in texts if text]
    return Group(*parts[: None if height is None else max(1, height - 1)])


def _table(found: list[Glance]) -> RenderableType:
    from rich.table import Table

    from maple_parsl.cli.output import clean
    from maple_parsl.cli.runs import age
    from maple_parsl.cli.show import colour

    table = Table(box=None, pad_edge=False)
    for heading in ("run", "state", "job", "age", "node-hours", "training", "launch", "why"):
        table.add_column(heading, no_wrap=heading in ("run", "state"), overflow="fold")
    for glance in found:
        table.add_row(
            glance.run,
            glance.state,
            clean(glance.job_id or ""),
            age(glance.created),
            _hours(glance, unit=""),
            _figures(glance),
            clean(glance.title),
            clean(glance.why),
            style=colour(glance.state),
        )
    return table


def _hours(glance: Glance, unit: str = " node-hours") -> str:
    most = "" if glance.most is None else f" of {glance.most:.2f}"
    if glance.used is None:
        return "" if glance.most is None else f"at most {glance.most:.2f}{unit}"
    return f"{glance.used:.2f}{most}{unit}"


def _figures(glance: Glance) -> str:
    found = glance.metrics
    if found is None or found.last_loss is None:
        return ""
    speed = f", {found.samples_per_s:.1f}/s" if found.samples_per_s else ""
    return f"step {found.steps}, loss {found.last_loss:.4f}{speed}"
