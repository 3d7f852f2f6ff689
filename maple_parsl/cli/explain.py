"""``maple explain``: for each line of a script, why it is there and where its value came from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maple_parsl.cli.options import Json

if TYPE_CHECKING:
    from maple_parsl.explain import Explained
    from maple_parsl.plan import Plan

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def explain(
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A plan's JSON file, a run's id, or a request in words.")],
    all: Annotated[
        bool, typer.Option("--all", help="Also each line of the shell that is the same in every script.")
    ] = False,
    json: Json = False,
) -> int:
    """Say for each line of the script why it is there. From words, also what each agent did (--json)."""
    from maple_parsl.explain import explain as explained

    made, trace = _plan(plan)
    rows = explained(made)
    if json:
        from maple_parsl.cli.output import emit_json

        emit_json({"title": made.title, "lines": [row.to_dict() for row in rows], "trace": trace})
    else:
        _show(rows, all)
    return 0


def _plan(text: str) -> tuple[Plan, object]:
    import json

    from maple_parsl.cli.words import answered, words_of
    from maple_parsl.errors import ConfigurationError
    from maple_parsl.plan import Plan

    path = Path(text)
    if len(text) < 4000 and "\n" not in text and path.is_file():
        raw = path.read_bytes()
        try:
            found = json.loads(raw)
        except ValueError as error:
            raise ConfigurationError(f"{text} is not a plan: {error}") from None
        inner = found.get("plan") if isinstance(found, dict) else None  # as maple plan --json prints it
        return Plan.from_json(json.dumps(inner) if isinstance(inner, dict) else raw), None
    if (words := words_of([text])) is not None:
        answer = answered(words, {})
        assert answer.plan is not None
        return answer.plan, answer.trace.to_dict()
    from maple_parsl.runs.run import Run

    return Run.open(text).plan, None


def _show(rows: tuple[Explained, ...], all: bool) -> None:
    from rich.table import Table

    from maple_parsl.cli.output import clean, console

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("LINE", justify="right")
    table.add_column("SCRIPT", overflow="fold", ratio=1)
    table.add_column("FROM", no_wrap=True)
    table.add_column("WHY", overflow="fold", ratio=1)
    previous = ""
    for row in rows:
        shipped = row.why.startswith("shipped shell")
        if not all and (not row.text.strip() or (shipped and row.why == previous)):
            continue
        previous = row.why
        source = f" [{row.source}, checked {row.checked_on}]" if row.source else ""
        text = row.text if all or not shipped else "(the shell that is the same in every script)"
        table.add_row(str(row.number), clean(text), row.layer, clean(row.why + source))
    console().print(table)
