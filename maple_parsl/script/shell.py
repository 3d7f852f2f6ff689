"""The state of the shell that is walked: variables, context, files it wrote, and what was recorded so far."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from maple_parsl.script.model import (
    Arg,
    Assignment,
    Command,
    Context,
    Fault,
    Heredoc,
    Launch,
    Place,
    Reference,
    Script,
    Step,
    Variable,
)
from maple_parsl.script.syntax import Code
from maple_parsl.script.values import Part, Value, assume, choice, const, sym
from maple_parsl.script.variables import PER_TASK, PER_WORKER, SIZES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

DEEPEST = 48
MOST_STEPS = 40_000
_LARGEST_FILE = 256 * 1024
_NAMED = re.compile(r"\$\{?([A-Za-z_]\w*)")
_PYTHON_ENV = frozenset("HOME USER PWD PATH LD_LIBRARY_PATH PYTHONPATH TMPDIR SHELL LANG OLDPWD".split())


@dataclass
class Written:
    """A file the script writes: its text as parts with their places."""

    parts: list[tuple[Part, int, bool]]
    code: Code
    heredoc: int | None = None
    run_by: list[str] = field(default_factory=list)


@dataclass
class Record:
    """Everything found, over all nested shells."""

    faults: list[Fault] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    assignments: list[Assignment] = field(default_factory=list)
    references: dict[tuple[str, Place, str], Reference] = field(default_factory=dict)
    heredocs: list[Heredoc] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    submitted: list[Script] = field(default_factory=list)
    functions: dict[str, tuple[Code, Node]] = field(default_factory=dict)
    files: dict[str, Written] = field(default_factory=dict)
    ticks: int = 0


class State:
    """Variables and position; :class:`maple_parsl.script.walk.Walker` adds the statements."""

    def __init__(self, code: Code, scheduler: Mapping[str, Value], directory: Path | None, record: Record) -> None:
        self.code = code
        self.scheduler = scheduler
        self.directory = directory
        self.record = record
        self.vars: dict[str, Variable] = {}
        self.hidden: frozenset[str] = frozenset()
        self.context: Context = "batch"
        self.worker = False
        self.positional: list[Arg] = []
        self.sink: list[Launch] = []
        self.output: list[Value] | None = None
        self.quiet = False
        self.returned: list[dict[str, Variable]] = []
        self.codes: list[int | None] = []
        self.status: bool | None = None
        self.locals: dict[str, Variable | None] = {}
        self.stdin: Value | None = None
        self.document: Written | None = None
        self.command = ""
        self.launching = False
        self.conditional = 0
        self.loop = ""
        self.background = False
        self.ended = False
        self.allexport = False
        self.depth = 0
        self.calls: tuple[str, ...] = ()

    # -- bounds

    def enter(self) -> bool:
        """One level deeper; False where that is too deep."""
        self.record.ticks += 1
        if self.depth >= DEEPEST or self.record.ticks > MOST_STEPS:
            kind = "too_deep" if self.depth >= DEEPEST else "too_complex"
            if not any(f.kind == kind for f in self.record.faults):
                self.record.faults.append(Fault(kind, self.code.place(0), "the rest is not followed"))
            return False
        self.depth += 1
        return True

    def leave(self) -> None:
        self.depth -= 1

    # -- variables

    def variable(self, name: str) -> Variable | None:
        return self.vars.get(name)

    def lookup(self, name: str) -> Value:
        """Value of a variable or parameter as an expansion sees it here."""
        held = self.vars.get(name)
        if held is not None:
            if held.items is not None:
                return held.items[0] if held.items else const("")
            symbol = held.value.symbol
            if symbol is not None and symbol.kind == "host_list" and not symbol.derived:
                return sym("host_list", symbol.detail)
            return held.value
        if name.isdigit():
            index = int(name) if len(name) < 6 else 0
            if 0 < index <= len(self.positional):
                return self.positional[index - 1].value
            return sym("positional", name) if not self.calls else const("")
        if name in "#?$!@*-_":
            return const(len(self.positional)) if name == "#" and self.calls else sym("special", name)
        if self.context in ("task", "remote"):
            if self.context == "task" and name in PER_TASK:
                return sym("this_host" if name in ("HOSTNAME", "SLURMD_NODENAME") else "per_task", name, 0)
            if self.context == "task" and (name in SIZES or (self.worker and name in PER_WORKER)):
                return sym("task_count" if name in SIZES else "per_task", name, 0)
            if name in self.hidden:
                return sym("unset", name)
            if self.context == "remote" and name.startswith(("SLURM_", "PBS_")):
                return sym("unset", name)
        found = self.scheduler.get(name)
        if found is not None:
            return found
        if name in PER_TASK or name in SIZES:
            return sym("unset", name)
        return sym("environment", name)

    def refer(self, name: str, offset: int, value: Value, quoted: bool, operator: str) -> None:
        place = self.code.place(offset)
        key = (name, place, self.context)
        if key in self.record.references and not self.launching:
            return
        held = self.vars.get(name)
        assigned = held is not None or name in self.hidden
        exported = held.exported if held else name not in self.hidden
        self.record.references[key] = Reference(
            name, place, self.context, value, self.command, self.launching, quoted, assigned, exported, operator
        )

    def never(self, arg: Arg) -> None:
        """Note the variables that reach a command as characters."""
        text = ""
        offsets: list[int] = []
        for part, offset, linear in arg.origins:
            part = part if isinstance(part, str) else "\0"
            text += part
            offsets.extend(range(offset, offset + len(part)) if linear and part.isascii() else [offset] * len(part))
        for match in _NAMED.finditer(text):
            place = self.code.lines.at(offsets[match.start()])
            name = match[1]
            if not any((name, place, c) in self.record.references for c in ("batch", "task", "remote")):
                self.record.references[(name, place, "never")] = Reference(
                    name, place, "never", const(match[0]), self.command, self.launching, True
                )

    def assign(
        self,
        name: str,
        value: Value,
        text: str,
        offset: int,
        how: str,
        items: tuple[Value, ...] | None = None,
        exported: bool | None = None,
    ) -> None:
        place = self.code.place(offset)
        before = self.vars.get(name)
        if exported is None:
            inherited = before is None and name in _PYTHON_ENV
            exported = self.allexport or inherited or (before.exported if before else False)
        self.vars[name] = Variable(name, value, exported, place, items)
        kind: Any = how
        self.record.assignments.append(
            Assignment(name, value, text, place, self.context, exported, kind, self.conditional > 0)
        )

    def environment(self) -> dict[str, Variable]:
        """What a child process gets of the script's own variables."""
        return {name: v for name, v in self.vars.items() if v.exported}

    # -- branches

    def alternatives(self, branches: Iterable[Callable[[], object]], exhaustive: bool) -> None:
        """Walk each branch from here and join what they leave."""
        base, results = self.vars, []
        was_ended = self.ended
        self.conditional += 1
        for branch in branches:
            self.vars, self.ended = dict(base), False
            branch()
            if not self.ended:
                results.append(self.vars)
        self.conditional -= 1
        if not exhaustive:
            results.append(base)
        self.ended = was_ended or not results
        if results:
            self.vars = self._joined(results)

    def _joined(self, states: list[dict[str, Variable]]) -> dict[str, Variable]:
        if len(states) == 1:
            return states[0]
        first = states[0]
        names = dict.fromkeys(name for state in states for name in state)
        done: dict[str, Variable] = {}
        for name in names:
            held = [state.get(name) for state in states]
            one = first.get(name)
            if all(v is one for v in held):
                if one is not None:
                    done[name] = one
                continue
            present = [v for v in held if v is not None]
            value = choice(v.value for v in present)
            same_items = all(v.items == present[0].items for v in present)
            if len(present) < len(held):
                value = assume(value)
            done[name] = Variable(
                name,
                value,
                any(v.exported for v in present),
                present[0].place,
                present[0].items if same_items else None,
            )
        return done

    @contextmanager
    def kept(self, *names: str) -> Iterator[None]:
        """Put these attributes back afterwards."""
        saved = [(name, getattr(self, name)) for name in names]
        try:
            yield
        finally:
            for name, value in saved:
                setattr(self, name, value)

    # -- files

    def written(self, path: Value) -> Written | None:
        """A file the script wrote, by path or, where just one has it, by name."""
        key = _key(path)
        found = self.record.files.get(key)
        if found is None:
            name = key.rpartition("/")[2]
            if not name or name.startswith("<"):
                return None
            same = [w for k, w in self.record.files.items() if k.rpartition("/")[2] == name]
            found = same[0] if len(same) == 1 else None
        return found

    def write(self, path: Value, written: Written) -> None:
        self.record.files[_key(path)] = written

    def moved(self, old: Value, new: Value) -> None:
        found = self.record.files.get(_key(old))
        if found is not None:
            self.record.files[_key(new)] = found

    def read_file(self, path: Value) -> tuple[str, str] | None:
        """Name and text of a small file below the script's folder."""
        text = path.text
        if self.directory is None or not text or "\0" in text or len(text) > 1000:
            return None
        try:
            root = self.directory.resolve()
            file = (root / text).resolve()
            if not file.is_relative_to(root) or not file.is_file() or file.stat().st_size > _LARGEST_FILE:
                return None
            return text, file.read_bytes().decode("utf-8", "replace").replace("\0", " ").replace("\r\n", "\n")
        except (OSError, ValueError, RuntimeError):
            return None

    def step(self, kind: str, words: Iterable[Arg], offset_place: Place, found: bool | None = None) -> None:
        self.record.steps.append(Step(kind, tuple(words), offset_place, self.context, found, self.conditional > 0))

    def submitted_heredoc(self, index: int, how: Literal["run", "submit"], by: str) -> None:
        held = self.record.heredocs[index]
        if how == "submit":
            self.record.heredocs[index] = replace(held, submitted=True)
        elif by not in held.run_by:
            self.record.heredocs[index] = replace(held, run_by=(*held.run_by, by))


def _key(path: Value) -> str:
    text = str(path)
    while text.startswith("./"):
        text = text[2:]
    return text
