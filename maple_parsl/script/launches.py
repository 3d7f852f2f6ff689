"""Commands that start processes: launchers, what wraps them, and what they start."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from maple_parsl.script import configs, mpmd, options, programs, wrappers
from maple_parsl.script.model import Arg, Command, Context, Launch, Option, Variable, Wrapper
from maple_parsl.script.syntax import Code
from maple_parsl.script.text import Lines
from maple_parsl.script.values import Part, Value, const

if TYPE_CHECKING:
    from maple_parsl.script.walk import Walker

Row = list[tuple[Part, int, bool]]
# Command name -> launcher and the grammar of its options.
_LAUNCHERS = {
    "srun": ("srun", "srun"), "mpiexec": ("mpiexec", "mpi"), "mpirun": ("mpirun", "mpi"), "ibrun": ("ibrun", "ibrun"),
    "mpiexec.hydra": ("mpiexec", "mpi"), "mpiexec.openmpi": ("mpiexec", "mpi"), "mpirun.openmpi": ("mpirun", "mpi"),
    "mpirun.mpich": ("mpirun", "mpi"), "mpiexec.mpich": ("mpiexec", "mpi"), "orterun": ("mpirun", "mpi"),
    "prterun": ("mpirun", "mpi"), "mpirun_rsh": ("mpirun", "mpi"), "jsrun": ("jsrun", "jsrun"),
    "aprun": ("aprun", "aprun"), "torchrun": ("torchrun", "torchrun"), "accelerate": ("accelerate", "accelerate"),
    "accelerate-launch": ("accelerate", "accelerate"), "deepspeed": ("deepspeed", "deepspeed"),
    "composer": ("composer", "composer"), "horovodrun": ("horovodrun", "horovodrun"), "ray": ("ray", "ray"),
    "lightning": ("lightning", "lightning"), "fabric": ("lightning", "lightning"), "ssh": ("ssh", "ssh"),
    "pdsh": ("pdsh", "pdsh"), "pbsdsh": ("pbsdsh", "pdsh"), "clush": ("pdsh", "pdsh"),
}  # fmt: skip
_MODULES = {
    "torch.distributed.run": "torchrun", "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate", "accelerate.commands.accelerate_cli": "accelerate",
    "deepspeed.launcher.runner": "deepspeed", "deepspeed": "deepspeed", "composer.cli.launcher": "composer",
    "horovod.runner.launch": "horovodrun",
}  # fmt: skip
FRAMEWORKS = frozenset(["torchrun", "accelerate", "deepspeed", "composer", "horovodrun", "lightning", "ray"])
STEPS = frozenset(["srun", "mpiexec", "mpirun", "ibrun", "jsrun", "aprun", "pdsh", "pbsdsh", "ssh"])
_SHELLS = frozenset("bash sh dash zsh ksh ash".split())
_DEEPEST = 12


def is_launcher(name: str) -> bool:
    return name in _LAUNCHERS


def spliced(words: Sequence[Arg]) -> Row | None:
    """Words put together with blanks, as ``eval`` and ``ssh`` do; None: nothing to read."""
    row: Row = []
    for index, word in enumerate(words):
        if index:
            row.append((" ", word.origins[0][1] if word.origins else 0, False))
        row.extend(word.origins)
    return row or None


@dataclass
class _Inside:
    """What stands behind a launcher's options."""

    wrappers: tuple[Wrapper, ...]
    children: tuple[Launch, ...]
    opaque: bool
    used: frozenset[int]
    environment: Mapping[str, Variable] | None = None


def run(walker: Walker, made: Command) -> frozenset[int]:
    """Add what a command starts to the walker; returns the words that were read as code."""
    words = made.words
    environment = walker.environment()
    if made.name == "sbatch" or made.name == "qsub" or made.name == "bsub":
        return _submitted(walker, made)
    row, at, used = _peel(words, environment)
    if at >= len(words):
        return frozenset()
    found = _launcher(words[at:])
    if found is not None:
        launch, inner_used = _launch(walker, replace(made, words=words[at:]), found, row, environment, 0)
        walker.sink.append(launch)
        return used | frozenset(i + at for i in inner_used)
    inside = _inside(walker, words[at:], made, environment, row, made.context, 0, False)
    if inside.children:
        walker.sink.extend(inside.children)
        return used | frozenset(i + at for i in inside.used)
    if programs.is_training(words[at:]) or (inside.opaque and walker.context == "task"):
        program = replace(made, words=words[at:])
        walker.sink.append(Launch("", "none", program, (), words[at:], row, (), environment, opaque=inside.opaque))
    return used | frozenset(i + at for i in inside.used)


def _submitted(walker: Walker, made: Command) -> frozenset[int]:
    walker.step("submit", made.words, made.place)
    document = walker.document
    if document is not None and document.heredoc is not None:
        walker.submitted_heredoc(document.heredoc, "submit", made.name)
    for word in made.words[1:]:
        written = walker.written(word.value) if word.value.parts else None
        if written is not None and written.heredoc is not None:
            walker.submitted_heredoc(written.heredoc, "submit", made.name)
    return frozenset(range(len(made.words)))


def _peel(words: tuple[Arg, ...], environment: dict[str, Variable]) -> tuple[tuple[Wrapper, ...], int, frozenset[int]]:
    """Wrappers at the front; what ``env`` sets is added to the environment."""
    row: list[Wrapper] = []
    used: set[int] = set()
    at = 0
    while at < len(words) and len(row) < 12:
        rest = words[at:]
        found = wrappers.measure(programs.base_name(rest[0]), rest)
        if found is None:
            break
        kind, length, variables = found
        row.append(Wrapper(programs.base_name(rest[0]), kind, rest[:length], rest[0].place))
        for name, value, place in variables:
            environment[name] = Variable(name, value, True, place)
        at += length
    return tuple(row), at, frozenset(used)


def _launcher(words: tuple[Arg, ...]) -> tuple[str, str, int] | None:
    """Launcher, grammar and number of words its name takes."""
    name = programs.base_name(words[0])
    if name in _LAUNCHERS:
        launcher, grammar = _LAUNCHERS[name]
        taken = 1
        if launcher in ("accelerate", "ray", "lightning") and name != "accelerate-launch":
            verb = words[1].value.text if len(words) > 1 else None
            wanted = {"accelerate": ("launch",), "ray": ("start",), "lightning": ("run", "fabric")}[launcher]
            if verb not in wanted:
                return None
            taken = 2
            if launcher == "lightning" and len(words) > 2 and words[2].value.text in ("model", "run"):
                taken = 3
        return launcher, grammar, taken
    if programs.PYTHON.match(name):
        at = 1
        while at < len(words):
            text = words[at].value.text or ""
            if text == "-m" and at + 1 < len(words):
                module = words[at + 1].value.text or ""
                launcher = _MODULES.get(module, "")
                taken = at + 2
                if module.endswith("accelerate_cli"):
                    taken += 1
                return (launcher, launcher, taken) if launcher else None
            if not text.startswith("-") or text == "-c":
                break
            at += 2 if text in ("-W", "-X") else 1
        if at < len(words) and programs.base_name(words[at]) in ("torchrun", "deepspeed", "composer"):
            inner = programs.base_name(words[at])
            return inner, inner, at + 1
    return None


def _launch(
    walker: Walker,
    made: Command,
    found: tuple[str, str, int],
    before: tuple[Wrapper, ...],
    environment: dict[str, Variable],
    depth: int,
) -> tuple[Launch, frozenset[int]]:
    launcher, grammar_name, taken = found
    words = made.words
    grammar = options.GRAMMARS[grammar_name]
    parsed, length = options.parse(grammar, words[taken:], made.context)
    at = taken + length
    if launcher in ("ssh", "pdsh") and not any(o.name == "hosts" for o in parsed) and at < len(words):
        host = words[at]
        parsed = (*parsed, Option("hosts", "", host.value, host.text, host.place, made.context, host.place))
        more, length = options.parse(grammar, words[at + 1 :], made.context)
        parsed, at = (*parsed, *more), at + 1 + length
    program = words[at:]
    if launcher in ("mpiexec", "mpirun"):
        parsed, program = mpmd.joined(grammar, parsed, program, made.context)
    environment, passed = _environment(launcher, parsed, environment)
    context: Context = "remote" if launcher in ("ssh", "pdsh", "pbsdsh") else "task"
    if launcher in FRAMEWORKS and made.context != "task":
        context = "task"
    config, config_found = configs.of(walker, launcher, parsed)
    launch = Launch(
        launcher,
        programs.dialect(launcher, programs.base_name(words[0]), parsed),
        made,
        parsed,
        program,
        before,
        (),
        environment,
        passed,
        config,
        config_found,
    )
    if not program:
        children: tuple[Launch, ...] = ()
        if launcher == "srun" and walker.document is not None and depth == 0:
            children = tuple(_from_document(walker, context, environment, launcher))
        return replace(launch, children=children), frozenset()
    inside = _inside(walker, program, made, environment, (), context, depth + 1, launcher in FRAMEWORKS)
    launch = replace(launch, wrappers=inside.wrappers, children=inside.children, opaque=inside.opaque)
    if inside.environment is not None:  # no launch inside: what env sets holds for the program
        launch = replace(launch, environment=inside.environment)
    return launch, frozenset(i + at for i in inside.used)


def _environment(
    launcher: str, parsed: tuple[Option, ...], environment: dict[str, Variable]
) -> tuple[dict[str, Variable], tuple[str, ...] | None]:
    """Environment of the started processes, and what the launcher is told to pass."""
    passed: list[str] = []
    told = False
    for option in parsed:
        if option.name in ("genv", "env"):
            told = True
            pieces = str(option.value)
            name, mark, _ = pieces.partition("=")
            rest = option.value.split("=")[1:] if mark else option.value.words()[1:]
            name = name if mark else pieces.split(" ")[0]
            if name.isidentifier():
                value = rest[0] if rest else const("")
                for further in rest[1:]:
                    value = value + const("=" if mark else " ") + further
                environment = {**environment, name: Variable(name, value, True, option.place)}
                passed.append(name)
        elif option.name in ("pass", "genvlist") or (option.name == "export" and launcher == "srun"):
            told = True
            for piece in option.value.split(","):
                name = str(piece).partition("=")[0]
                passed.append(name)
                if "=" in str(piece) and name.isidentifier():
                    value = piece.split("=")[1] if len(piece.split("=")) > 1 else const("")
                    environment = {**environment, name: Variable(name, value, True, option.place)}
    return environment, tuple(passed) if told else None


def _inside(
    walker: Walker,
    words: tuple[Arg, ...],
    made: Command,
    environment: dict[str, Variable],
    before: tuple[Wrapper, ...],
    context: Context,
    depth: int,
    worker: bool,
) -> _Inside:
    """Wrappers, shells, scripts and launchers among the words a launcher starts."""
    environment = dict(environment)
    row, at, used = _peel(words, environment)
    row = (*before, *row)
    if at >= len(words) or depth > _DEEPEST:
        return _Inside(row, (), False, used)
    rest = words[at:]
    name = programs.base_name(rest[0])
    found = _launcher(rest)
    if found is not None and (depth > 0 or row):
        launch, more = _launch(walker, replace(made, words=rest, context=context), found, (), environment, depth)
        return _Inside(row, (launch,), False, used | frozenset(i + at for i in more))
    if name in walker.record.functions:
        code, body = walker.record.functions[name]
        text = Code(code.node(body), code.lines, [(0, *code.origin(body.start_byte))])
        children = walker.nested(text, context, list(rest[1:]), environment, name, worker)
        return _Inside(row, tuple(children), False, used)
    if name in _SHELLS:
        return _shell(walker, rest, environment, row, context, at, used, worker)
    script = _file(walker, rest[0].value, rest[1:], environment, context, worker, name)
    if script is not None:
        return _Inside((*row, Wrapper(name, "script", rest[:1], rest[0].place)), tuple(script), False, used)
    if context == "remote" or (context != made.context and _spaced(rest)):
        code_row = spliced(rest)
        if code_row and context == "remote":
            children = walker.nested(walker.code.inner(code_row), context, [], {}, "ssh", worker)
            return _Inside(row, tuple(children), False, used | frozenset(range(at, len(words))))
    return _Inside(row, (), name.endswith(".sh"), used, environment)


def _spaced(words: tuple[Arg, ...]) -> bool:
    return len(words) == 1 and " " in str(words[0].value)


def _shell(
    walker: Walker,
    rest: tuple[Arg, ...],
    environment: Mapping[str, Variable],
    row: tuple[Wrapper, ...],
    context: Context,
    at: int,
    used: frozenset[int],
    worker: bool,
) -> _Inside:
    """``bash -c TEXT``, ``bash FILE``, ``bash`` with a here-document."""
    index = 1
    while index < len(rest):
        text = rest[index].value.text or ""
        if re.match(r"-[a-zA-Z]*c[a-zA-Z]*\Z", text) and not text.startswith("--"):
            row = (*row, Wrapper(programs.base_name(rest[0]), "shell", rest[: index + 1], rest[0].place))
            if index + 1 >= len(rest):
                return _Inside(row, (), False, used)
            body = rest[index + 1]
            code = walker.code.inner(body.origins)
            children = walker.nested(code, context, list(rest[index + 3 :]), environment, "bash", worker)
            return _Inside(row, tuple(children), False, used | {at + index + 1})
        if not text.startswith(("-", "+")) or not text:
            break
        index += 2 if text in ("-o", "+o", "--rcfile", "--init-file") else 1
    row = (*row, Wrapper(programs.base_name(rest[0]), "shell", rest[:index], rest[0].place))
    if index >= len(rest) or (rest[index].value.text == "-s"):
        started = tuple(_from_document(walker, context, environment, programs.base_name(rest[0])))
        return _Inside(row, started, False, used)
    script = _file(
        walker, rest[index].value, rest[index + 1 :], environment, context, worker, programs.base_name(rest[0])
    )
    if script is None:
        return _Inside(row, (), True, used)
    return _Inside(row, tuple(script), False, used)


def _from_document(walker: Walker, context: Context, environment: Mapping[str, Variable], by: str) -> list[Launch]:
    document = walker.document
    if document is None:
        return []
    if document.heredoc is not None:
        walker.submitted_heredoc(document.heredoc, "run", by)
    return walker.nested(document.code.inner(document.parts), context, [], environment, by)


def _file(
    walker: Walker,
    path: Value,
    arguments: tuple[Arg, ...],
    environment: Mapping[str, Variable],
    context: Context,
    worker: bool,
    by: str,
) -> list[Launch] | None:
    """A script that was written above or lies beside the one that is read; None where it cannot be read."""
    written = walker.written(path)
    if written is not None:
        if written.heredoc is not None:
            walker.submitted_heredoc(written.heredoc, "run", by)
        code = written.code.inner(written.parts)
        if re.match(r"#!.*python", code.text):
            return None
        return walker.nested(code, context, list(arguments), environment, str(path)[-60:], worker)
    text = path.text
    if text is None or not (text.endswith((".sh", ".bash", ".slurm", ".sbatch")) or "/" in text or "." not in text):
        return None
    read = walker.read_file(path)
    if read is None or re.match(r"#!.*python", read[1]) or "\x7fELF" in read[1][:8]:
        return None
    return walker.nested(Code(read[1], Lines(read[1], read[0])), context, list(arguments), environment, text, worker)


__all__ = ["FRAMEWORKS", "STEPS", "is_launcher", "run", "spliced"]
