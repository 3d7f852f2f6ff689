"""What several families of rules ask of a script."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.finding import Edit
from maple_parsl.rules.base import Subject
from maple_parsl.script.launches import FRAMEWORKS, STEPS
from maple_parsl.script.model import Arg, Launch, Option, Place
from maple_parsl.script.rankmap import LaunchRanks
from maple_parsl.script.values import Value
from maple_parsl.script.variables import JobShape

_TOOLS = frozenset(
    "hostname echo date true env printenv nvidia-smi rocm-smi xpu-smi mkdir rm cp rsync ls cat df free sleep test"
    " uptime lscpu ulimit tar id pwd uname which scontrol ip pip touch chmod ln find dd sbcast ping mv unzip".split()
)
PYTHON = re.compile(r"(?:python|pypy)[\d.]*\Z")
LOOPBACK = re.compile(r"(?:localhost|127\.\d+\.\d+\.\d+|::1|\[::1\]|0\.0\.0\.0)\Z", re.I)


def shape(subject: Subject) -> JobShape:
    return JobShape(subject.script)


def has_directives(subject: Subject) -> bool:
    """The script is one that is submitted."""
    return any(d.state == "effective" for d in subject.script.directives)


def fewest_nodes(subject: Subject) -> int:
    """At least so many nodes has the job, as far as it says."""
    if subject.ranks.job_nodes:
        return subject.ranks.job_nodes
    kind = subject.ranks.kind
    if kind is not None and kind.select_unit == "gpu" and subject.script.scheduler == "pbs":
        return 1
    return shape(subject).node_range[0] or 1


def framework_of(launch: Launch) -> Launch | None:
    """The framework's launcher in a chain."""
    return next((part for part in launch.all if part.launcher in FRAMEWORKS), None)


def complete(launch: Launch) -> bool:
    """Its command line was read to the end: a program follows the options, and no line was cut in two."""
    return bool(launch.program)


def stepped(launch: Launch) -> bool:
    """Started by a launcher that reaches other nodes."""
    return launch.launcher in STEPS


def leaf_name(launch: Launch) -> str:
    """Name of the innermost program."""
    leaf = launch.leaf
    before = sum(len(w.words) for w in leaf.wrappers if w.kind == "env") if leaf.launcher else 0
    words = leaf.program[before:]
    text = words[0].value.text if words else None
    return (text or "").rpartition("/")[2]


def trains(launch: Launch) -> bool:
    """A program of the job's work, not a small tool such as ``hostname``."""
    if framework_of(launch) is not None:
        return True
    if launch.leaf.opaque or launch.opaque:
        return True
    for word in launch.leaf.program[:6]:
        text = word.value.text or ""
        name = text.rpartition("/")[2]
        if PYTHON.match(name):
            return not _inline(launch.leaf.program)
        if name.endswith(".py"):
            return True
    return False


def _inline(words: tuple[Arg, ...]) -> bool:
    return any((w.value.text or "") in ("-c", "-V", "--version") for w in words[1:3])


def sources_unread(subject: Subject) -> bool:
    """A file of the user's that could not be read is sourced: it may set anything."""
    return any(
        s.found is False and not any((w.value.text or "").startswith("/etc/") for w in s.words)
        for s in subject.script.steps_of("source")
    )


def is_tool(launch: Launch) -> bool:
    return leaf_name(launch) in _TOOLS


def number(launch: Launch, name: str) -> int | None:
    value = launch.value(name)
    return value.number if value is not None else None


def spread(ranks: LaunchRanks) -> bool:
    """The launch covers two nodes or more, for certain."""
    return (ranks.nodes or 1) >= 2 or (ranks.framework_nodes or 1) >= 2


def settings(words: tuple[Arg, ...]) -> Iterator[tuple[str, Value, Place]]:
    """``--name value``, ``--name=value``, ``name=value`` among a program's arguments; dashes and case evened."""
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        head = word.value.parts[0] if word.value.parts else ""
        if not isinstance(head, str):
            continue
        name, mark, _ = head.partition("=")
        flag = name.startswith("-")
        key = name.lstrip("-+").replace("-", "_").lower()
        if not re.match(r"[a-z_][\w.]*\Z", key):
            continue
        if mark:
            pieces = word.value.split("=")
            value = pieces[1] if len(pieces) == 2 else Value()
            yield key, value, word.place
        elif flag and index < len(words):
            following = words[index].value
            first = following.parts[0] if following.parts else ""
            if isinstance(first, str) and re.match(r"--?[A-Za-z]", first):
                continue
            yield key, following, words[index].place
            index += 1


def setting(words: tuple[Arg, ...], *names: str) -> tuple[Value, Place] | None:
    """The last of these settings; a name also stands for ``trainer.name`` and the like."""
    found = None
    for key, value, place in settings(words):
        if key in names or key.rpartition(".")[2] in names:
            found = (value, place)
    return found


def option_edit(subject: Subject, option: Option, text: str, *, safe: bool = False) -> tuple[Edit, ...]:
    """The option's text in its line becomes ``text``, where it stands there once and in full."""
    return replace_text(subject, option.place, option.text, text, safe=safe)


def replace_text(subject: Subject, place: Place, old: str, new: str, *, safe: bool = False) -> tuple[Edit, ...]:
    if place.file or not old or not 0 < place.line <= len(subject.lines):
        return ()
    row = subject.lines[place.line - 1]
    if row.count(old) != 1:
        return ()
    return (Edit(first=place.line, last=place.line, text=row.replace(old, new), safe=safe),)


def insert_before(subject: Subject, place: Place, text: str, *, safe: bool = False) -> tuple[Edit, ...]:
    """A line in front of the command at a place, where a command certainly begins on that line."""
    if place.file or not 0 < place.line <= len(subject.lines):
        return ()
    row = subject.lines[place.line - 1]
    before = row[: place.column - 1]
    previous = subject.lines[place.line - 2].rstrip() if place.line > 1 else ""
    if before.strip() or previous.endswith(("\\", "|", "&&")):
        return ()
    return (Edit(first=place.line, last=place.line, text=before + text, insert=True, safe=safe),)


def job_environment(subject: Subject, name: str) -> bool:
    """The script sets this variable somewhere."""
    return bool(subject.script.assigned(name))


def once(places: set[tuple[int, int]], place: Place | None) -> bool:
    """True the first time a place is seen."""
    key = (place.line, place.column) if place else (0, 0)
    if key in places:
        return False
    places.add(key)
    return True
