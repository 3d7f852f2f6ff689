"""``maple doctor``: this machine, this site, this configuration."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from maple_parsl.cli.options import Json

if TYPE_CHECKING:
    from maple_parsl.doctor import Check

_MARKS = {"ok": "ok", "note": "note", "fault": "FAULT"}


def command(
    site: Annotated[str | None, typer.Option(help="The site to look at; this machine's without it.")] = None,
    account: Annotated[
        str | None, typer.Option("--account", "-A", help="Is it usable? Else the configured one.")
    ] = None,
    queue: Annotated[str | None, typer.Option("--queue", "-q", help="Is it usable? Else the configured one.")] = None,
    module: Annotated[list[str] | None, typer.Option(help="Module of an environment to try; repeat.")] = None,
    venv: Annotated[str | None, typer.Option(help="Virtual environment to try.")] = None,
    conda: Annotated[str | None, typer.Option(help="Conda environment to try.")] = None,
    container: Annotated[str | None, typer.Option(help="Container image to try (with --node).")] = None,
    python: Annotated[str | None, typer.Option(help="Python interpreter to try.")] = None,
    node: Annotated[
        bool, typer.Option("--node", help="Try it on a node too: a job, whose cost is shown first.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="The cost of --node is confirmed.")] = False,
    json: Json = False,
) -> int:
    """What on this machine stands in the way of a launch, and what to do; exit code 1 when something does.

    Nothing is submitted without --node.
    """
    from maple_parsl.catalogue import Catalogue
    from maple_parsl.doctor import Asked, examine
    from maple_parsl.folders import current

    named = {"modules": module, "venv": venv, "conda": conda, "container": container, "python": python}
    asked = Asked(site, account, queue, tuple((name, value) for name, value in named.items() if value))
    catalogue = Catalogue.load(os.environ, current())
    checks = examine(catalogue, os.environ, asked)
    if node:
        from maple_parsl.cli.run import asker
        from maple_parsl.doctor.node import on_node

        def show(text: str) -> None:
            sys.stderr.write(f"{text}\n")

        checks.append(on_node(catalogue, asked, yes=yes, ask=None if json else asker(), show=show))
    faulty = any(check.verdict == "fault" for check in checks)
    if json:
        from maple_parsl.cli.output import emit_json

        emit_json({"ok": not faulty, "checks": checks})
    else:
        _print(checks)
    return int(faulty)


def _print(checks: list[Check]) -> None:
    from rich.table import Table

    from maple_parsl.cli.output import clean, console

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for check in checks:
        saw = clean(check.saw) + (f"\n→ {clean(check.remedy)}" if check.remedy else "")
        table.add_row(_MARKS[check.verdict], check.name, saw, style="bold red" if check.verdict == "fault" else None)
    console().print(table)
