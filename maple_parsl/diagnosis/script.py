"""What a diagnosis reads from the batch script and the accounting: conditions and edits, no full parse."""

from __future__ import annotations

import re
from dataclasses import dataclass

from maple_parsl.diagnosis.engine import compile_pattern
from maple_parsl.diagnosis.model import Edit
from maple_parsl.diagnosis.signature import TextEdit

_NODES = (
    re.compile(r"^#(?:SBATCH|BSUB)\s.*?(?:--nodes[= ]|-N[ =]?|-nnodes )(\d+)", re.M),
    re.compile(r"^#PBS\s.*?select=(\d+)", re.M),
    re.compile(r"^#PBS\s.*?nodes=(\d+)", re.M),
)
_LIST = re.compile(r"\w+\[[\d]+[-,][\d,-]+\]|NNodes\W+([2-9]|\d\d+)\b|nodect\W+([2-9]|\d\d+)\b")


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts around the logs. ``script``: its text without comments but with directives, or None."""

    script: str | None
    nodes: int | None
    site: str = ""


def facts_of(script: str | None, accounting: str, site: str) -> Facts:
    """Gather them."""
    nodes = None
    for pattern in _NODES:
        if script and (found := pattern.search(script)):
            nodes = int(found[1])
    if nodes is None and _LIST.search(accounting):
        nodes = 2
    return Facts(None if script is None else _without_comments(script), nodes, site)


def edit_of(words: str, change: TextEdit | None, script: str | None) -> Edit:
    """The edit in words, with the line that changes where exactly one kind of line does."""
    if change is None or script is None:
        return Edit(words=words)
    find = compile_pattern(change.find)
    for number, line in enumerate(script.splitlines(), 1):
        if line.lstrip().startswith("#") and not re.match(r"#(SBATCH|PBS|BSUB|!)", line):
            continue
        raw = line.encode("utf-8", "surrogateescape")
        if found := find.search(raw):
            put = re.sub(r"\\(\d)", lambda mark: _group(found, int(mark[1])), change.put)
            new = raw[: found.start()] + put.encode() + raw[found.end() :]
            return Edit(words=words, line=number, old=line, new=new.decode("utf-8", "replace"))
    return Edit(words=words)


def _group(found: object, number: int) -> str:
    group = getattr(found, "group", None)
    value = group(number) if callable(group) else b""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def _without_comments(script: str) -> str:
    kept = (re.sub(r"^\s*#(?!SBATCH|PBS|BSUB|!).*", "", line) for line in script.split("\n"))
    return "\n".join(kept)
