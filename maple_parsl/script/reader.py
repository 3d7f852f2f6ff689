"""Any batch script -> :class:`Script`. Nothing in it is run, and nothing here raises on what it is given."""

from __future__ import annotations

import re
from pathlib import Path

from maple_parsl.script import directives as scanning
from maple_parsl.script.model import Directive, Fault, Place, Reference, Scheduler, Script
from maple_parsl.script.shell import Record
from maple_parsl.script.syntax import Code
from maple_parsl.script.text import Lines, decode
from maple_parsl.script.values import sym
from maple_parsl.script.variables import JobShape, scheduler_variables

_HINTS: tuple[tuple[Scheduler, re.Pattern[str]], ...] = (
    ("slurm", re.compile(r"\bSLURM_\w|\bsrun\b|\bsbatch\b")),
    ("pbs", re.compile(r"\bPBS_\w|\bqsub\b")),
    ("lsf", re.compile(r"\bLSB_\w|\bjsrun\b|\bbsub\b")),
    ("cobalt", re.compile(r"\bCOBALT_\w")),
)
_MOST_FAULTS = 50


def read(text: str | bytes, name: str = "job.sh", directory: Path | None = None) -> Script:
    """Read a script.

    Args:
        text: its content. name: its file name, for messages.
        directory: where files it sources or starts may be read from (small ones, below this folder only).
    """
    return _read(text, name, directory, 0)


def _read(text: str | bytes, name: str, directory: Path | None, depth: int) -> Script:
    plain, form, faults = decode(text)
    lines = Lines(plain)
    scheduler, directives, open_at = scanning.scan(plain, lines)
    if scheduler == "none":
        scheduler = next((s for s, pattern in _HINTS if pattern.search(plain)), "none")
    faults.extend(Fault("unterminated_heredoc", place, "its end is missing") for place in open_at)
    head = Script(name, plain, form, scheduler, directives, tuple(faults))
    if any(f.kind in ("binary", "utf16", "empty") for f in faults):
        return head
    record = Record(faults=faults)
    try:
        walker = _walked(head, lines, directory, record)
    except (RecursionError, MemoryError) as error:
        record.faults.append(Fault("malformed", Place(1, 1), type(error).__name__))
        return _script(head, record, (), {})
    submitted = []
    if depth < 2:
        for document in record.heredocs:
            if document.submitted:
                inner = _read(document.text, f"{name}:{document.place.line}", directory, depth + 1)
                submitted.append(inner)
    record.submitted.extend(submitted)
    return _script(head, record, tuple(walker.sink), walker.vars)


def _walked(head: Script, lines: Lines, directory: Path | None, record: Record):  # type: ignore[no-untyped-def]
    from maple_parsl.script.walk import Walker

    walker = Walker(Code(head.text, lines), scheduler_variables(JobShape(head)), directory, record)
    walker.run(walker.code)
    return walker


def _script(head: Script, record: Record, launches, variables) -> Script:  # type: ignore[no-untyped-def]
    references = [*_in_directives(head.directives), *record.references.values()]
    return Script(
        head.name,
        head.text,
        head.format,
        head.scheduler,
        head.directives,
        tuple(record.faults[:_MOST_FAULTS]),
        tuple(record.commands),
        tuple(record.assignments),
        tuple(references),
        launches,
        tuple(record.heredocs),
        tuple(record.steps),
        tuple(record.functions),
        tuple(record.submitted),
        variables,
    )


def _in_directives(directives: tuple[Directive, ...]) -> list[Reference]:
    return [
        Reference(name, d.value_place or d.place, "directive", sym("environment", name), d.flag)
        for d in directives
        for name in d.variables
        if name.isidentifier()
    ]
