"""What a read script is made of. All frozen; places count from 1.

``Script`` answers most questions by itself::

    script = read(text)
    script.directive("--nodes").value        # the one in effect, "-N" asks the same
    script.launches[0].chain                 # srun, then torchrun, …
    script.launches[0].option("ntasks")      # Option or None, whatever the launcher calls it
    script.references("SLURM_NODEID")        # each with where it is expanded
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Literal

from maple_parsl.script.places import Fault, Format, OddCharacter, Place, Shebang
from maple_parsl.script.values import Part, Value

Context = Literal["batch", "task", "remote", "never", "directive"]
Where = Literal["effective", "too_late", "in_heredoc", "commented", "foreign"]
Scheduler = Literal["slurm", "pbs", "lsf", "cobalt", "sge", "none"]
__all__ = [
    "Arg", "Assignment", "Command", "Context", "Directive", "Fault", "Format", "Heredoc", "Launch", "OddCharacter",
    "Option", "Place", "Reference", "Scheduler", "Script", "Shebang", "Step", "Variable", "Where", "Wrapper",
]  # fmt: skip
_NOTHING: Mapping[str, Variable] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Directive:
    """One scheduler option.

    Attributes:
        scheduler: whose. name: normalised, long where there is a long form (``--nodes``, PBS ``-l select``).
        flag: as written. value: text behind it, quotes removed; None for a switch. raw: the whole line.
        state: ``effective``; ``too_late`` (behind the first command); ``in_heredoc`` (of another script);
            ``commented`` (``##SBATCH``, ``# SBATCH``, ``#sbatch``); ``foreign`` (of another scheduler than the
            script's).
        variables: shell variables in the value, which the scheduler does not expand.
        comment: text after ``#`` on the line. trailing: words that are no option.
        glued: the value seems to have other text stuck to it. overrides: the earlier one of the same name.
    """

    scheduler: Scheduler
    name: str
    flag: str
    value: str | None
    raw: str
    place: Place
    state: Where = "effective"
    variables: tuple[str, ...] = ()
    comment: str | None = None
    trailing: tuple[str, ...] = ()
    value_place: Place | None = None
    quoted: bool = False
    overrides: Place | None = None

    @property
    def number(self) -> int | None:
        """The value as a whole number."""
        return int(self.value) if self.value and self.value.isascii() and self.value.isdigit() else None


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable at some point: value, whether child processes get it, where it was set, elements of an array."""

    name: str
    value: Value
    exported: bool
    place: Place
    items: tuple[Value, ...] | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """A variable is set (or, ``how`` = ``unset``, removed); ``prefix``: for one command only."""

    name: str
    value: Value
    text: str
    place: Place
    context: Context
    exported: bool
    how: Literal["assign", "append", "export", "local", "readonly", "prefix", "read", "loop", "unset", "default"]
    conditional: bool = False


@dataclass(frozen=True, slots=True)
class Reference:
    """A variable is read.

    Attributes:
        context: ``batch``: expanded by the batch shell; ``task``: by a shell the launcher started, in each
            process; ``remote``: by a shell over ssh; ``never``: passed on or kept as the characters ``$NAME``;
            ``directive``: in a scheduler's line.
        command: the first word of the command it stands in; ``launcher``: that command starts processes.
        assigned: the script set it before. exported: a child process would see it.
        operator: what follows the name in ``${NAME…}``.
    """

    name: str
    place: Place
    context: Context
    value: Value
    command: str = ""
    launcher: bool = False
    quoted: bool = False
    assigned: bool = False
    exported: bool = False
    operator: str = ""


@dataclass(frozen=True, slots=True)
class Arg:
    """A word as a command gets it: value, source text, place; ``quote``: the quotes around it."""

    value: Value
    text: str
    place: Place
    quote: str = ""
    origins: tuple[tuple[Part, int, bool], ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class Command:
    """A simple command as it will run (functions' bodies at their calls)."""

    words: tuple[Arg, ...]
    place: Place
    context: Context
    background: bool = False
    conditional: bool = False
    loop: str = ""
    redirects: tuple[tuple[str, Value], ...] = ()

    @cached_property
    def name(self) -> str:
        """The last part of the first word, where known."""
        text = self.words[0].value.text if self.words else None
        return text.rpartition("/")[2] if text else ""

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The words; what is not certain is empty."""
        return tuple(word.value.text or "" for word in self.words)

    def __str__(self) -> str:
        return " ".join(str(w) for w in self.words)


@dataclass(frozen=True, slots=True)
class Option:
    """A launcher's option: ``name`` normalised (``ntasks``, ``nproc_per_node``), ``flag`` as written."""

    name: str
    flag: str
    value: Value
    text: str
    place: Place
    context: Context
    value_place: Place


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A command between a launcher and what it starts: ``bash -c``, ``numactl``, a container, an affinity script."""

    name: str
    kind: Literal["shell", "env", "bind", "container", "profiler", "time", "affinity", "conda", "script", "other"]
    words: tuple[Arg, ...]
    place: Place


@dataclass(frozen=True)
class Launch:
    """A command that starts processes.

    Attributes:
        launcher: ``srun`` ``mpiexec`` ``mpirun`` ``ibrun`` ``jsrun`` ``aprun`` ``torchrun`` ``accelerate``
            ``deepspeed`` ``composer`` ``lightning`` ``horovodrun`` ``ray`` ``ssh`` ``pdsh`` ``pbsdsh``;
            empty: a program started by no launcher.
        dialect: ``slurm`` ``pals`` ``hydra`` ``openmpi`` ``intel`` ``ibrun`` … or ``unknown``.
        program: the words behind the launcher's options. opaque: a script that could not be read stands there.
        wrappers: what stands between. children: the launches inside; ``inner`` is the first.
        environment: exported variables in effect, with those given on the command.
        passed: variables the launcher is told to pass (``-x``, ``--genv``); None: said nothing.
        config: settings read from a configuration file. skipped: words that no table explains.
    """

    launcher: str
    dialect: str
    command: Command
    options: tuple[Option, ...]
    program: tuple[Arg, ...]
    wrappers: tuple[Wrapper, ...] = ()
    children: tuple[Launch, ...] = ()
    environment: Mapping[str, Variable] = field(default_factory=lambda: _NOTHING, repr=False)
    passed: tuple[str, ...] | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    config_found: bool | None = None
    opaque: bool = False

    @property
    def place(self) -> Place:
        return self.command.place

    @property
    def context(self) -> Context:
        return self.command.context

    @property
    def inner(self) -> Launch | None:
        return self.children[0] if self.children else None

    @property
    def chain(self) -> tuple[Launch, ...]:
        """This launch, its inner one, and so on."""
        row = [self]
        while row[-1].children:
            row.append(row[-1].children[0])
        return tuple(row)

    @property
    def leaf(self) -> Launch:
        """The innermost launch: its ``program`` and ``environment`` are those of the training processes."""
        return self.chain[-1]

    @property
    def all(self) -> Iterator[Launch]:
        """This launch and every one inside."""
        yield self
        for child in self.children:
            yield from child.all

    def option(self, name: str) -> Option | None:
        """The option in effect: by normalised name or as written; later ones win."""
        key = name.lstrip("-").replace("-", "_")
        for option in reversed(self.options):
            if option.name == key or option.flag == name:
                return option
        return None

    def value(self, name: str) -> Value | None:
        """Value of an option, None where it is not given."""
        option = self.option(name)
        return option.value if option else None

    def variable(self, name: str) -> Value | None:
        """Value of an environment variable the started processes get, None where the script sets none."""
        found = self.environment.get(name)
        return found.value if found else None


@dataclass(frozen=True, slots=True)
class Heredoc:
    """A here-document: ``file`` it is written to (None: fed to ``command``), whether variables in it are expanded
    when it is written, and whether the script later runs it."""

    text: str
    place: Place
    delimiter: str
    expands: bool
    command: str
    file: Value | None
    run_by: tuple[str, ...] = ()
    submitted: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """A line that changes where or how the rest runs.

    Kinds: ``cd`` ``module`` ``conda`` ``venv`` ``source`` ``set`` ``ulimit`` ``ssh`` ``wait`` ``exit`` ``exec``
    ``submit`` ``trap`` ``pip``. ``found``: a sourced file was read.
    """

    kind: str
    words: tuple[Arg, ...]
    place: Place
    context: Context
    found: bool | None = None
    conditional: bool = False

    def __str__(self) -> str:
        return " ".join(str(w) for w in self.words)


@dataclass(frozen=True)
class Script:
    """A batch script, read. Nothing of it was run, and nothing raises: what is wrong is in ``faults``."""

    name: str
    text: str = field(repr=False)
    format: Format
    scheduler: Scheduler
    directives: tuple[Directive, ...] = ()
    faults: tuple[Fault, ...] = ()
    commands: tuple[Command, ...] = field(default=(), repr=False)
    assignments: tuple[Assignment, ...] = field(default=(), repr=False)
    all_references: tuple[Reference, ...] = field(default=(), repr=False)
    launches: tuple[Launch, ...] = ()
    heredocs: tuple[Heredoc, ...] = field(default=(), repr=False)
    steps: tuple[Step, ...] = field(default=(), repr=False)
    functions: tuple[str, ...] = ()
    submitted: tuple[Script, ...] = field(default=(), repr=False)
    variables: Mapping[str, Variable] = field(default_factory=dict, repr=False)

    @cached_property
    def _by_name(self) -> dict[str, list[Reference]]:
        table: dict[str, list[Reference]] = {}
        for reference in self.all_references:
            table.setdefault(reference.name, []).append(reference)
        return table

    @cached_property
    def _directives_by_name(self) -> dict[str, list[Directive]]:
        table: dict[str, list[Directive]] = {}
        for directive in self.directives:
            table.setdefault(directive.name, []).append(directive)
        return table

    @cached_property
    def rows(self) -> tuple[str, ...]:
        """The script's lines, without their ends."""
        return tuple(self.text.split("\n"))

    def directive(self, name: str) -> Directive | None:
        """The directive in effect: the last effective one of that name (``-N`` and ``--nodes`` ask the same)."""
        from maple_parsl.script.directives import normal_name

        named = self._directives_by_name.get(normal_name(name, self.scheduler), ())
        return next((d for d in reversed(named) if d.state == "effective"), None)

    def directives_named(self, name: str, state: Where | None = "effective") -> tuple[Directive, ...]:
        """All of that name, in order; ``state=None``: the ineffective ones too."""
        from maple_parsl.script.directives import normal_name

        named = self._directives_by_name.get(normal_name(name, self.scheduler), ())
        return tuple(d for d in named if state is None or d.state == state)

    def references(self, name: str, context: Context | None = None) -> tuple[Reference, ...]:
        """Where a variable is read, in the order it happens."""
        return tuple(r for r in self._by_name.get(name, ()) if context is None or r.context == context)

    def assigned(self, name: str) -> tuple[Assignment, ...]:
        """Where a variable is set."""
        return tuple(a for a in self.assignments if a.name == name)

    def steps_of(self, *kinds: str) -> tuple[Step, ...]:
        return tuple(s for s in self.steps if s.kind in kinds)

    @property
    def all_launches(self) -> Iterator[Launch]:
        """Every launch, the nested ones after their outer one."""
        for launch in self.launches:
            yield from launch.all

    def fault(self, kind: str) -> Fault | None:
        return next((f for f in self.faults if f.kind == kind), None)
