"""Commands the shell runs itself, and those that prepare what the launch finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from maple_parsl.script import launches
from maple_parsl.script.model import Assignment, Command, Variable
from maple_parsl.script.syntax import Code
from maple_parsl.script.text import Lines
from maple_parsl.script.values import EMPTY, Value, sym, unknown

if TYPE_CHECKING:
    from maple_parsl.script.walk import Walker


def forget(walker: Walker, name: str, offset: int) -> None:
    """``unset NAME``."""
    place = walker.code.place(offset)
    walker.vars[name] = Variable(name, sym("unset", name), False, place)
    walker.record.assignments.append(
        Assignment(name, EMPTY, "", place, walker.context, False, "unset", walker.conditional > 0)
    )


def _exit(walker: Walker, made: Command) -> None:
    walker.step("exit", made.words, made.place)
    walker.ended = True


def _return(walker: Walker, made: Command) -> None:
    if walker.calls:
        walker.returned.append(walker.vars)
        walker.codes.append(made.words[1].value.number if len(made.words) > 1 else None)
        walker.ended = True


def _nothing(walker: Walker, made: Command) -> None:
    """A command that changes nothing here."""


def _exec(walker: Walker, made: Command) -> None:
    words = made.words[1:]
    while words and (words[0].value.text or "").startswith("-"):
        words = words[2:] if words[0].value.text == "-a" else words[1:]
    if words:
        inner = replace(made, words=words)
        walker.record.commands.append(inner)
        name = inner.name
        if name in HANDLERS and name != "exec":
            HANDLERS[name](walker, inner)
        else:
            launches.run(walker, inner)
        walker.ended = True
    else:
        walker.step("exec", made.words, made.place)


def _command(walker: Walker, made: Command) -> None:
    words = made.words[1:]
    if words and not (words[0].value.text or "-").startswith("-"):
        launches.run(walker, replace(made, words=words))


def _step(kind: str) -> Callable[[Walker, Command], None]:
    def note(walker: Walker, made: Command) -> None:
        walker.step(kind, made.words, made.place)

    return note


def _set(walker: Walker, made: Command) -> None:
    walker.step("set", made.words, made.place)
    texts = [w.value.text or "" for w in made.words[1:]]
    for index, text in enumerate(texts):
        if text == "--":
            walker.positional = list(made.words[index + 2 :])
            return
        letters = text[1:] if not text.startswith("--") else ""
        name = texts[index + 1] if text in ("-o", "+o") and index + 1 < len(texts) else ""
        if (text.startswith("-") and "a" in letters and "o" not in letters) or (text == "-o" and name == "allexport"):
            walker.allexport = True
        elif (text.startswith("+") and "a" in letters) or (text == "+o" and name == "allexport"):
            walker.allexport = False


def _shift(walker: Walker, made: Command) -> None:
    number = made.words[1].value.number if len(made.words) > 1 else 1
    walker.positional = walker.positional[number if number is not None and number >= 0 else 0 :]


def _eval(walker: Walker, made: Command) -> None:
    row = launches.spliced(made.words[1:])
    if row is None:
        return
    options = next((p for p, _, _ in row if not isinstance(p, str) and p.kind == "choice"), None)
    if options is None:
        walker.in_same_shell(walker.code.inner(row))
        return

    def one(value: Value) -> Callable[[], None]:
        def go() -> None:
            parts = [(q, o, False) for p, o, _ in row for q in (value.parts if p is options else (p,))]
            walker.in_same_shell(walker.code.inner(parts))

        return go

    walker.alternatives([one(v) for v in options.options], exhaustive=True)


def _source(walker: Walker, made: Command) -> None:
    words = made.words
    if len(words) < 2:
        return
    path = words[1].value
    name = path.text or str(path)
    if name.endswith(("bin/activate",)):
        walker.step("venv", words, made.place, None)
        return
    if name.endswith(("conda.sh", "/activate")) or (name == "activate"):
        walker.step("conda", words, made.place)
        return
    written = walker.written(path)
    read = walker.read_file(path) if written is None else None
    walker.step("source", words, made.place, written is not None or read is not None)
    if written is not None:
        walker.in_same_shell(written.code.inner(written.parts))
    elif read is not None:
        walker.in_same_shell(Code(read[1], Lines(read[1], read[0])))


def _read(walker: Walker, made: Command) -> None:
    names = [w.value.text or "" for w in made.words[1:]]
    skip = False
    for name in names:
        if skip or name.startswith("-"):
            skip = not skip and name in ("-d", "-n", "-p", "-t", "-u", "-N", "-i", "-a")
            continue
        if name.isidentifier():
            symbol = walker.stdin.symbol if walker.stdin is not None else None
            hosts = symbol is not None and symbol.kind in ("host_list", "node_lines")
            if hosts and symbol is not None:
                value = sym("loop_host", symbol.detail) if walker.loop else sym("first_host", symbol.detail)
            elif walker.stdin is not None and walker.stdin.is_known and len(names) == 1:
                value = walker.stdin
            else:
                value = unknown(f"read {name}")
            walker.vars[name] = Variable(name, value, False, made.place)


def _mapfile(walker: Walker, made: Command) -> None:
    names = [w.value.text or "" for w in made.words[1:] if not (w.value.text or "-").startswith("-")]
    if names and names[-1].isidentifier():
        value = walker.stdin if walker.stdin is not None else unknown("mapfile")
        walker.assign(names[-1], value, str(made)[:120], 0, "read")
        walker.vars[names[-1]] = replace(walker.vars[names[-1]], place=made.place)


def _move(walker: Walker, made: Command) -> None:
    plain = [w for w in made.words[1:] if not (w.value.text or "").startswith("-")]
    if len(plain) == 2:
        walker.moved(plain[0].value, plain[1].value)


def _tee(walker: Walker, made: Command) -> None:
    from maple_parsl.script.simple import keep_document

    for word in made.words[1:]:
        if not (word.value.text or "").startswith("-"):
            keep_document(walker, word.value)


def _conda(walker: Walker, made: Command) -> None:
    texts = [w.value.text for w in made.words[1:2]]
    if texts == ["run"]:
        launches.run(walker, made)
    walker.step("conda", made.words, made.place)


def _let(walker: Walker, made: Command) -> None:
    for word in made.words[1:]:
        name, mark, rest = str(word.value).partition("=")
        name = name.rstrip("+-*/")
        if mark and name.isidentifier():
            walker.vars[name] = Variable(name, unknown(rest), False, made.place)


HANDLERS: dict[str, Callable[[Walker, Command], None]] = {
    "exit": _exit, "return": _return, "break": _nothing, "continue": _nothing, ":": _nothing,
    "exec": _exec, "command": _command,
    "builtin": _command, "cd": _step("cd"), "pushd": _step("cd"), "popd": _step("cd"), "module": _step("module"),
    "ml": _step("module"), "spack": _step("module"), "conda": _conda, "mamba": _conda, "micromamba": _conda,
    "ulimit": _step("ulimit"), "wait": _step("wait"), "trap": _step("trap"), "pip": _step("pip"),
    "pip3": _step("pip"), "set": _set, "shift": _shift, "eval": _eval, "source": _source, ".": _source,
    "read": _read, "mapfile": _mapfile, "readarray": _mapfile, "mv": _move, "cp": _move, "tee": _tee, "let": _let,
}  # fmt: skip
