"""What the families on requests, environments and texts ask of a script and a site."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator

from maple_parsl.finding import Edit
from maple_parsl.rules.base import Subject
from maple_parsl.script.model import Command, Directive, Place, Script
from maple_parsl.script.times import seconds
from maple_parsl.script.variables import expand_nodes, gres_gpus, typed_count
from maple_parsl.site import Facts, NodeKind
from maple_parsl.walltime import Walltime

GPU_OPTIONS = ("--gres", "--gpus", "--gpus-per-node", "--gpus-per-task", "--gpus-per-socket", "--ntasks-per-gpu")


def cite(facts: Facts) -> str:
    """Source and day of a group of facts."""
    return f"{facts.source} (checked {facts.checked_on})"


def effective(subject: Subject) -> list[Directive]:
    """Directives the scheduler heeds, of the script's own scheduler."""
    return [d for d in subject.script.directives if d.state == "effective"]


def submitted(subject: Subject) -> bool:
    """The script is one that is given to a scheduler."""
    return bool(effective(subject))


def asked(subject: Subject, *names: str) -> Directive | None:
    """The first of these directives that is in effect."""
    for name in names:
        found = subject.script.directive(name)
        if found is not None:
            return found
    return None


def row(subject: Subject, place: Place | int) -> str:
    """The line of a place; empty where it is in another file."""
    line = place if isinstance(place, int) else 0 if place.file else place.line
    return subject.lines[line - 1] if 0 < line <= len(subject.lines) else ""


def change(subject: Subject, place: Place, old: str, new: str, *, safe: bool = True) -> tuple[Edit, ...]:
    """Replace a text that stands once in the line of a place."""
    text = row(subject, place)
    if not old or text.count(old) != 1:
        return ()
    return (Edit(first=place.line, last=place.line, text=text.replace(old, new), safe=safe),)


def after_directives(subject: Subject, text: str, *, safe: bool = False) -> tuple[Edit, ...]:
    """A line behind the last directive in effect."""
    rows = [d.place.line for d in effective(subject)]
    if not rows:
        return ()
    return (Edit(first=max(rows) + 1, last=max(rows) + 1, text=text, insert=True, safe=safe),)


def alone(subject: Subject, directive: Directive) -> bool:
    """No other option stands in the directive's line."""
    return len(subject.directives_by_line.get(directive.place.line, ())) == 1


def texts(command: Command) -> list[str]:
    """The words of a command; what is not certain is empty."""
    return list(command.texts)


def commands(subject: Subject, *names: str) -> Iterator[Command]:
    for command in subject.script.commands:
        if command.name in names:
            yield command


def option(words: list[str], *names: str) -> str | None:
    """Value of an option in a row of words (``--a=v`` or ``--a v``), the last one."""
    found = None
    for index, word in enumerate(words):
        bare, mark, value = word.partition("=")
        if bare in names:
            following = words[index + 1] if index + 1 < len(words) else ""
            found = value if mark else following
    return found


def near(word: str, words: Iterable[str]) -> str | None:
    """The word most like this one."""
    close = difflib.get_close_matches(word, list(words), 1, 0.75)
    return close[0] if close else None


def walltime(subject: Subject) -> Walltime | None:
    """The time limit asked for, where it can be read."""
    found = subject.script.directive("walltime")
    if found is None or not found.value or found.variables:
        return None
    text = found.value
    total = seconds(text, subject.script.scheduler)
    return Walltime(total) if total else None


def nodes(subject: Subject) -> int | None:
    return subject.ranks.job_nodes


def fewest(subject: Subject) -> int:
    """At least so many nodes."""
    found = subject.script.directive("--nodes") if subject.script.scheduler == "slurm" else None
    low = expand_nodes(found.value)[0] if found and not found.variables else None
    return nodes(subject) or low or 1


def kinds(subject: Subject) -> list[NodeKind]:
    """The node kinds the job may get: of its queue, else all of the site."""
    if subject.site is None:
        return []
    names = subject.queue.kinds if subject.queue else tuple(subject.site.kinds)
    return [subject.site.kinds[name] for name in names]


def gpus_of(directive: Directive | None) -> int | None:
    """The number in a GPU option."""
    if directive is None or directive.variables or not directive.value:
        return None
    return gres_gpus(directive.value) if directive.name == "--gres" else typed_count(directive.value)


def per_node_gpus(subject: Subject) -> tuple[int, Directive] | None:
    """GPUs per node asked for by a directive, and which."""
    for name in ("--gpus-per-node", "--gres"):
        found = subject.script.directive(name)
        count = gpus_of(found)
        if found is not None and count is not None:
            return count, found
    return None


def whole(directive: Directive | None) -> int | None:
    return directive.number if directive is not None else None


_PYTHON = re.compile(r"(?:from [\w.]+ import |import \w+(?:[., ]|\Z)|def \w+\(.*|class \w+.*:\Z|@\w+)")


def is_shell(subject: Subject) -> bool:
    """The text is a shell script, and not a program in another language that writes one."""
    return reads_as_shell(subject.script)


def reads_as_shell(script: Script) -> bool:
    """As :func:`is_shell`, for a script."""
    shebang = script.format.shebang
    if shebang is not None and not shebang.late:
        return re.search(r"python|perl|ruby|node|lua|julia", shebang.text) is None
    inside = _documents(script)
    return sum(_PYTHON.match(text) is not None for at, text in enumerate(script.rows, 1) if at not in inside) < 3


def documents(subject: Subject) -> set[int]:
    """Lines that are the text of a here-document."""
    return _documents(subject.script)


def _documents(script: Script) -> set[int]:
    inside: set[int] = set()
    for document in script.heredocs:
        start = document.place.line
        inside.update(range(start, start + document.text.count("\n") + 1))
    return inside


def login_shell(subject: Subject) -> bool:
    """The shebang asks for a login shell."""
    shebang = subject.script.format.shebang
    words = shebang.text.split()[1:] if shebang else []
    return any(w == "--login" or (w[:1] == "-" and w[1:2] != "-" and ("l" in w or "i" in w)) for w in words)
