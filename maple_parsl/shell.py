"""Words of a command line, and how each is written into a shell script."""

from __future__ import annotations

import re
import shlex

from pydantic import BaseModel, ConfigDict

from maple_parsl.errors import RequestError

_NOT_SHELL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\n\r\u0085\u2028\u2029]")

_HOME_OR_VARIABLE = re.compile(r"(?:~|\$(?P<name>[A-Za-z_][A-Za-z0-9_]*))(?=/|$)")


class Var(BaseModel):
    """A word that is the value of a shell variable when the command runs."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    var: str


class Option(BaseModel):
    """A word that is an option joined with a variable's value: ``name=$var``."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    option: str
    var: str


class Rooted(BaseModel):
    """A word that is a path below what a variable of the job holds: ``$var`` and the rest, after fixed text."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    root: str
    rest: str = ""
    before: str = ""


class Spread(BaseModel):
    """Any number of words: the elements of a bash array; ``@`` stands for a script's own arguments."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    array: str


Word = str | Var | Option | Rooted | Spread


def path(text: str, before: str = "") -> Word:
    """A path as people write it. A leading ``~`` or ``$NAME`` is left to the shell of the job, where it is right."""
    if match := _HOME_OR_VARIABLE.match(text):
        return Rooted(root=match["name"] or "HOME", rest=text[match.end() :], before=before)
    return before + text


def quote(text: str) -> str:
    """One shell word that means exactly ``text``; refuses what cannot be one line."""
    if _NOT_SHELL.search(text):
        raise RequestError(f"{text!r} has a control character, which cannot be put in a job script")
    return shlex.quote(text)


def word(value: Word) -> str:
    """A word as it is written: literals quoted, variables expanded as one word."""
    if isinstance(value, Var):
        return f'"${value.var}"'
    if isinstance(value, Option):
        return f'{value.option}="${value.var}"'
    if isinstance(value, Spread):
        return '"$@"' if value.array == "@" else f'"${{{value.array}[@]}}"'
    if isinstance(value, Rooted):
        return f'{value.before}"${value.root}"' + (quote(value.rest) if value.rest else "")
    return quote(value)


def line(words: tuple[Word, ...]) -> str:
    """A command on one line."""
    return " ".join(word(w) for w in words)


def folded(words: tuple[Word, ...], indent: str = "  ", width: int = 96) -> list[str]:
    """A command over several lines, each but the last ending in a backslash; an option stays with its value."""
    lines: list[str] = []
    current = ""
    for index, text in enumerate([word(w) for w in words]):
        previous = words[index - 1] if index else ""
        is_value = isinstance(previous, str) and previous.startswith("-") and not text.startswith("-")
        if current and len(current) + len(text) + 1 > width and not is_value:
            lines.append(current)
            current = indent + text
        else:
            current = f"{current} {text}" if current else text
    lines.append(current)
    return [*(text + " \\" for text in lines[:-1]), lines[-1]]


def assigned(name: str, value: str) -> str:
    """``export NAME=value`` with the value quoted."""
    return f"export {name}={quote(value)}"
