"""``maple runs``: the list of runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maple_parsl.cli.options import Json

if TYPE_CHECKING:
    from maple_parsl.runs.store import Store, Summary

_RECENT = 20
_WIDE = 100  # columns from which on a run takes one row of a table


def command(
    everything: Annotated[bool, typer.Option("--all", help=f"All runs, not the {_RECENT} newest.")] = False,
    site: Annotated[str | None, typer.Option(help="Only runs at this site.")] = None,
    json: Json = False,
) -> int:
    """List runs, newest first. One whose files are damaged is listed as unreadable."""
    return list_runs(everything=everything, site=site, json=json, ended=True)


def list_runs(*, everything: bool, site: str | None, json: bool, ended: bool = False) -> int:
    """Print the list."""
    from maple_parsl.runs.store import Store

    rows = list(_rows(Store(), site, ended, None if everything or not ended else _RECENT))
    if json:
        from maple_parsl.cli.output import emit_json

        emit_json({"runs": rows})
        return 0
    if not rows:
        print("no runs" if ended else "no active runs (maple runs lists all)")
        return 0
    _print(rows)
    return 0


def _rows(store: Store, site: str | None, ended: bool, most: int | None) -> Iterator[dict[str, Any]]:
    count = 0
    for summary in store.summaries():
        if site is not None and summary.site != site and summary.problem is None:
            continue
        row = _row(store, summary)
        if not ended and row["final"]:
            continue
        yield row
        count += 1
        if most is not None and count >= most:
            return


def _row(store: Store, summary: Summary) -> dict[str, Any]:
    from maple_parsl.runs.overview import glance

    found = glance(store, summary)
    names = ("run", "site", "title", "created", "state", "final", "job_id", "why")
    return {name: getattr(found, name) for name in names}


def _print(rows: list[dict[str, Any]]) -> None:
    from rich.padding import Padding
    from rich.table import Table

    from maple_parsl.cli.output import clean, console
    from maple_parsl.cli.show import colour

    screen = console()
    if screen.width < _WIDE:
        for row in rows:
            screen.print(
                f"{row['run']}  {row['state']}  {age(row['created'])}",
                style=None if row["state"] == "done" else colour(row["state"]),
            )
            for text in (row["title"], row["why"]):
                if text:
                    screen.print(Padding(clean(text), (0, 0, 0, 2)))
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("run", "state", "job", "age", "launch", "why"):
        table.add_column(heading, no_wrap=heading in ("run", "state"), overflow="fold")
    for row in rows:
        table.add_row(
            row["run"],
            row["state"],
            clean(row["job_id"] or ""),
            age(row["created"]),
            clean(row["title"]),
            clean(row["why"]),
            style=None if row["state"] == "done" else colour(row["state"]),
        )
    screen.print(table)


def age(created: float) -> str:
    """How long ago, in one unit."""
    if not created:
        return ""
    seconds = max(0, time.time() - created)
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"
