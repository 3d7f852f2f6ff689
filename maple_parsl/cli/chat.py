"""``maple chat``: a conversation that asks only for what is missing, and ends with a plan, or with a run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from maple_parsl.agents import Answer

app = typer.Typer(add_completion=False, rich_markup_mode=None)
_TURNS = 20
_FREE = {"walltime_min": "walltime"}


@app.command()
def chat(
    words: Annotated[str | None, typer.Argument(metavar="[WORDS]", help="The request to begin with.")] = None,
) -> int:
    """Plan a launch in a conversation. Nothing is submitted before you say yes; empty input or Ctrl-D ends it."""
    import maple_parsl.api as api

    said = words if words is not None else _ask("What shall be trained, where, on how many nodes, for how long?")
    stated: dict[str, Any] = {}
    for _ in range(_TURNS):
        if not said:
            return 0
        found = api.ask(said, stated=stated or None)
        if found.plan is not None:
            return _finish(found)
        question = found.questions[0]
        print(_understood(found))
        reply = _ask(f"{question}")
        if not reply:
            return 0
        said = _joined(said, question.field, reply, stated)
    print("this went on for long; maple plan --help lists every option")
    return 2


def _joined(said: str, field: str, reply: str, stated: dict[str, Any]) -> str:
    """The request with a reply: a field's own answer is a statement; anything longer is read with the words."""
    from maple_parsl.errors import RequestError
    from maple_parsl.request import Request

    name = _FREE.get(field, field)
    value: Any = int(reply) if name == "nodes" and reply.isdecimal() else reply
    if (
        name in ("site", "nodes", "account", "walltime", "script", "queue", "model", "paradigm")
        and " " not in reply.strip()
    ):
        try:
            Request.of(**{name: value})
        except RequestError as error:
            print(error)
            return said
        stated[name] = value
        return said
    if name == "walltime":
        return f"{said}\nsorry, {reply}"
    return f"{said}\nsorry, {reply}"


def _understood(found: Answer) -> str:
    from maple_parsl.cli.output import clean

    known = [f"{name} {value.value}" for name, value in found.reading.values.items()]
    return clean(f"so far: {', '.join(known)}" if known else "nothing is understood yet")


def _finish(found: Answer) -> int:
    from maple_parsl.cli.output import console
    from maple_parsl.cli.show import print_findings, print_plan
    from maple_parsl.cli.words import flags

    plan = found.plan
    assert plan is not None
    screen = console()
    print_plan(screen, plan)
    print_findings(screen, plan.findings)
    screen.print(f"the same in options: {flags(plan.request)}", soft_wrap=True)
    if _ask("Submit it? [y/N]").lower() not in ("y", "yes"):
        print("nothing was submitted")
        return 0
    import maple_parsl.api as api

    run = api.run(request=plan.request, yes=True)
    print(f"run {run.id}; maple status {run.id}, maple logs -f {run.id}")
    return 0


def _ask(question: str) -> str:
    from maple_parsl.cli.output import clean

    sys.stdout.write(f"{clean(question)}\n> ")
    sys.stdout.flush()
    return sys.stdin.readline().strip()
