"""Requests in words on the command line: recognised, answered, and shown as the options that say the same."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from maple_parsl.errors import RequestError

if TYPE_CHECKING:
    from maple_parsl.agents import Answer
    from maple_parsl.plan import Plan
    from maple_parsl.request import Request

MOST = 200_000


def words_of(positional: Sequence[str] | None) -> str | None:
    """The request in words that the arguments are; None where they are MODEL, PARADIGM and SITE.

    One argument with blanks in it, or that is JSON, is words; ``-`` reads them from standard input.
    """
    if not positional or len(positional) != 1:
        return None
    text = positional[0]
    if text == "-":
        return sys.stdin.read(MOST)
    return text if any(c.isspace() for c in text.strip()) or text.lstrip().startswith("{") else None


def answered(words: str, stated: Mapping[str, Any]) -> Answer:
    """The answer to words, together with what options state.

    Raises:
        UnansweredError: questions are open.
    """
    import maple_parsl.api as api

    found = api.ask(words, stated=stated or None)
    if found.plan is None:
        raise found.unanswered()
    return found


def stated_fields(request: Request) -> dict[str, Any]:
    """The fields that a request made from options states."""
    return {name: getattr(request, name) for name in request.model_fields_set}


def flags(request: Request, verb: str = "run") -> str:
    """The command that states the same as structured options."""
    words = ["maple", verb]
    plain = (
        "model",
        "paradigm",
        "site",
        "script",
        "nodes",
        "gpus_per_node",
        "node_kind",
        "walltime",
        "account",
        "queue",
        "name",
        "template",
        "precision",
        "cpus",
        "memory",
        "preflight",
        "watchdog",
    )
    for name in plain:
        if (value := getattr(request, name)) is not None:
            words += [f"--{name.replace('_', '-')}", str(value)]
    for name in ("whole_gpus", "requeue", "snapshot"):
        if getattr(request, name):
            words.append(f"--{name.replace('_', '-')}")
    for name in ("dp", "tp", "pp", "zero_stage"):
        if (value := getattr(request.parallelism, name)) is not None:
            words += [f"--{name.replace('_', '-')}", str(value)]
    for name in ("venv", "conda", "container", "engine", "python"):
        if (value := getattr(request.environment, name)) is not None:
            words += [f"--{name}", value]
    many = {
        "module": request.environment.modules,
        "bind": request.environment.binds,
        "setup": request.setup,
        "directive": request.directives,
        "launcher-arg": request.launcher_args,
        "env": tuple(f"{key}={value}" for key, value in request.env.items()),
    }
    for name, values in many.items():
        for value in values:
            words.append(f"--{name}={value}")
    if request.watchdog is not None and request.watchdog_action != "report":
        words += ["--watchdog-action", request.watchdog_action]
    if request.exclusive is not None:
        words.append("--exclusive" if request.exclusive else "--no-exclusive")
    return shlex.join([*words, *(["--", *request.args] if request.args else [])])


def confirm(plan: Plan, values: dict[str, Any]) -> None:
    """Words may be misread, so a person confirms what they mean; ``--yes`` is such a confirmation.

    Raises:
        LimitError: nobody confirmed; nothing was submitted.
    """
    from maple_parsl.cli.output import clean
    from maple_parsl.errors import LimitError
    from maple_parsl.runs.cost import Cost

    if values.get("yes"):
        return
    if not values.get("json") and sys.stdin.isatty() and sys.stderr.isatty():
        sys.stderr.write(f"{clean(plan.title)}\n{clean(str(Cost.of(plan)))}\nSubmit it? [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            values["yes"] = True
            return
    raise LimitError(f"{Cost.of(plan)}: a launch from words needs a confirmation, --yes. Nothing was submitted")


def say(found: Answer, verb: str) -> None:
    """On standard error: what was understood, what to know, and the equivalent options."""
    from maple_parsl.cli.output import clean

    if found.plan is None:
        raise RequestError("there is no plan to show")
    write = sys.stderr.write
    for note in (*found.notes, *found.notices, *(issue.message for issue in found.reading.warnings)):
        write(f"note: {clean(note)}\n")
    write(f"the same in options: {clean(flags(found.plan.request, verb))}\n")
