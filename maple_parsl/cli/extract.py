"""``maple extract``: what words state, each value with its place; no model, nothing planned."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maple_parsl.cli.options import Json

if TYPE_CHECKING:
    from maple_parsl.extraction import Reading

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(context_settings={"ignore_unknown_options": True})
def extract(
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="The request; - reads standard input.")],
    json: Json = False,
) -> int:
    """Read a request in words, JSON or YAML. Exit code 2: it holds an error, such as a contradiction."""
    import os

    import maple_parsl.extraction as extraction
    from maple_parsl.catalogue import Catalogue
    from maple_parsl.cli.words import MOST

    text = sys.stdin.read(MOST) if words == ["-"] else " ".join(words)
    reading = extraction.extract(text, Catalogue.load(os.environ, Path.cwd()))
    if json:
        from maple_parsl.cli.output import emit_json

        emit_json(reading.to_dict())
    else:
        _show(reading)
    return 2 if reading.errors else 0


def _show(reading: Reading) -> None:
    from maple_parsl.cli.output import clean, console
    from maple_parsl.cli.show import facts

    table = facts()
    for name, value in reading.values.items():
        text = reading.words[value.start : value.end].strip()
        told = value.why or (f"from {text!r}" if text else "")
        table.add_row(name, f"{clean(str(value.value))}  ({clean(told)})" if told else clean(str(value.value)))
    if reading.missing:
        table.add_row("missing", ", ".join(reading.missing))
    screen = console()
    screen.print(table)
    for issue in reading.errors:
        screen.print(
            f"error {issue.fault_class}: {clean(issue.message)}" + (f"; {clean(issue.fix)}" if issue.fix else "")
        )
    for issue in reading.warnings:
        screen.print(f"warning: {clean(issue.message)}" + (f"; {clean(issue.fix)}" if issue.fix else ""))
