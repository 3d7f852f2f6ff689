"""The program of a script's launch and its arguments, as they are written."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from maple_parsl.errors import ComposeError
from maple_parsl.rules import parts
from maple_parsl.script.values import Symbol, Value
from maple_parsl.shell import quote

if TYPE_CHECKING:
    from maple_parsl.script.model import Arg, Launch
    from maple_parsl.script.rankmap import LaunchRanks, ScriptRanks

MINIAPP = "/miniapps/train.py"
_HOLE = re.compile("[\ue000-\uf7ff]")
_NAMES = re.compile(r"\$\{?([A-Za-z_]\w*)")
_POSITIONAL = re.compile(r"\$\{?[@*0-9]")


@dataclass(frozen=True)
class Program:
    """What trains.

    Attributes:
        words: program and arguments, each as shell text, without the interpreter. python: an interpreter runs it.
        interpreter: as written, where it is not just python or python3.
        names: variables the words read. shell: only the batch shell can expand them (arrays, commands, ``$@``).
        wrapper: a script between launcher and interpreter, such as one that binds devices.
    """

    words: tuple[str, ...]
    python: bool
    interpreter: str | None = None
    names: frozenset[str] = field(default=frozenset())
    shell: bool = False
    wrapper: str | None = None

    @property
    def miniapp(self) -> bool:
        return "$MAPLE_MINIAPP" in self.words[0]


def main_launch(ranks: ScriptRanks) -> LaunchRanks:
    """The one launch that trains.

    Raises:
        ComposeError: there is none, or there are several.
    """
    # Of several launches by one line of a function the last is meant: a try of the launch comes before it.
    at = {(one.launch.place.line, one.launch.place.column): one for one in ranks.launches if parts.trains(one.launch)}
    able = list(at.values())
    launched = [one for one in able if one.launch.launcher] or able
    if not launched and (unclear := [one for one in ranks.launches if not parts.is_tool(one.launch)]):
        line = unclear[-1].launch.place.line
        raise ComposeError([f"line {line}: what is started there cannot be told from the text; write the program out"])
    if not launched:
        raise ComposeError(["no launch of a program was found in this script, so there is nothing to carry over"])
    if len(launched) > 1:
        lines = ", ".join(str(one.launch.place.line) for one in launched)
        raise ComposeError([f"{len(launched)} launches (lines {lines}); make one script of each, and port one by one"])
    return launched[0]


def program_of(launch: Launch) -> Program:
    """The innermost program's words.

    Raises:
        ComposeError: a word cannot be told from the text.
    """
    leaf = launch.leaf
    if leaf.opaque or launch.opaque or not leaf.program:
        what = leaf.program[0].text if leaf.program else "the program"
        raise ComposeError([f"line {launch.place.line}: {what} starts the program, and could not be read to the end"])
    others = {_at(word) for word in launch.command.words} - {_at(word) for word in leaf.program}
    for part in launch.all:
        others |= {(o.place.line, o.place.column) for o in part.options}
    words = list(leaf.program)
    wrapper = _wrapper(words)
    words = words[1:] if wrapper else words
    name = (words[0].value.text or "").rpartition("/")[2]
    python = parts.PYTHON.match(name) is not None
    interpreter = None
    if python:
        if (words[0].value.text or "") not in ("python", "python3"):
            interpreter = words[0].text
        words = words[1:]
        while words and words[0].value.text == "-u":
            words = words[1:]
    elif parts.framework_of(launch) is not None or (words[0].value.text or "").endswith(".py"):
        python = True
    if not words:
        raise ComposeError([f"line {launch.place.line}: an interpreter without a program"])
    row = _texts(words, others, launch.place.line)
    joined = " ".join(row)
    shell = bool(_POSITIONAL.search(joined) or "$(" in joined or "`" in joined or "[@]" in joined or "[*]" in joined)
    return Program(tuple(row), python, interpreter, frozenset(_NAMES.findall(joined)), shell, wrapper)


def _wrapper(words: list[Arg]) -> str | None:
    """A shell script that is handed the interpreter and the program."""
    texts = [(word.value.text or "").rpartition("/")[2] for word in words[:2]]
    wraps = len(texts) == 2 and texts[0].endswith(".sh") and parts.PYTHON.match(texts[1])
    return words[0].text if wraps else None


def _at(word: Arg) -> tuple[int, int]:
    return word.place.line, word.place.column


def _texts(words: list[Arg], others: set[tuple[int, int]], line: int) -> list[str]:
    row: list[str] = []
    done: set[tuple[int, int]] = set()
    for word in words:
        at = _at(word)
        text = word.text
        own = not word.place.file and at not in others and not _HOLE.search(text) and not _POSITIONAL.search(text)
        if own:
            if at not in done:
                row.append(text)
            done.add(at)
            continue
        made = _from_value(word.value)
        if made is None:
            raise ComposeError(
                [f"line {line}: {text} holds a word of the program that cannot be told from the text; write it out"]
            )
        row.append(made)
    return row


def _from_value(value: Value) -> str | None:
    """A word of known value, as shell text; variables of the environment stay variables."""
    if value.text is not None:
        return quote(value.text)
    if any(isinstance(p, str) and p.endswith(MINIAPP) for p in value.parts):
        return '"$MAPLE_MINIAPP"'
    row = []
    for part in value.parts:
        if isinstance(part, Symbol):
            if part.kind != "environment" or not part.detail.isidentifier():
                return None
            row.append(f'"${part.detail}"')
        else:
            row.append(quote(part))
    return "".join(row)
