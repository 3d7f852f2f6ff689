"""The new script: the target's own, with the user's lines and program in their places."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from maple_parsl.port.request import TOKEN
from maple_parsl.script.render import comment, lines

if TYPE_CHECKING:
    from maple_parsl.plan import Plan
    from maple_parsl.port.result import Part
    from maple_parsl.port.translate import Translated

_WIDTH = 96
_TOKEN = re.compile(rf"(?:\./)?{TOKEN}\.\w+")


def write(
    plan: Plan, made: Translated, kept: Iterable[Part], exports: Iterable[str], todo: Iterable[str], origin: str
) -> str:
    """The whole script.

    Args:
        made: the program. kept: the user's lines. exports: assignments that stood on the launch line.
        todo: sentences for the reader. origin: where the lines come from, in words.
    """
    rows: list[str] = []
    called = made.program.words[0].strip("\"'").rpartition("/")[2]
    for line in lines(plan.model_copy(update={"title": _TOKEN.sub(lambda _: called, plan.title)})):
        text = line.text
        if text.startswith("# --- Rendezvous"):
            rows += _block(plan, made, kept, exports, origin)
        if _TOKEN.search(text):
            text = _TOKEN.sub(lambda _: _folded(made.program.words), text)
        rows.append(text)
        if text.startswith("# Written by Maple "):
            rows += _head(todo, origin)
    return "\n".join(rows) + "\n"


def _head(todo: Iterable[str], origin: str) -> list[str]:
    said = [f"#  - {comment(one)}" for one in todo]
    return [f"# Carried from {comment(origin)}.", *(["# To be looked at:", *said] if said else [])]


def _block(plan: Plan, made: Translated, kept: Iterable[Part], exports: Iterable[str], origin: str) -> list[str]:
    own = [part.text for part in kept]
    rows = [*own, *exports]
    if any(re.match(r"\s*set\s+-", text) for text in own):
        rows += ["set +eux # asked for above; what follows counts on plain settings", "set +o pipefail"]
    if made.assignments:
        rows.append("# Counts of this job; the old script worked them out from its scheduler.")
        rows += [f"{name}={value}" for name, value in made.assignments]
    inherited = sorted(made.program.names - {"MAPLE_JOB_ID", "MAPLE_MINIAPP", "MASTER_ADDR", "MASTER_PORT"})
    if plan.launch.mode == "node" and inherited:
        rows.append(f"export {' '.join(inherited)} # each node fills them into the program's words")
    return [f"# --- From {comment(origin)}, word for word", *rows, ""] if rows else []


def _folded(words: tuple[str, ...]) -> str:
    rows = [words[0]]
    for word in words[1:]:
        if len(rows[-1]) + len(word) + 1 > _WIDTH:
            rows.append(word)
        else:
            rows[-1] += f" {word}"
    return " \\\n    ".join(rows)
