"""Applying edits to a script's text: bottom-up, never overlapping, byte for byte outside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from maple_parsl.finding import Edit, Finding

ROUNDS = 10


@dataclass(frozen=True)
class Applied:
    """A text after edits: ``applied`` went in; ``later`` overlap with those, or do not fit the text."""

    data: bytes
    applied: tuple[Finding, ...]
    later: tuple[Finding, ...]


def editable(data: bytes) -> bool:
    """Line numbers of findings are those of the bytes. False: UTF-16, binary, or line ends that are lone CR."""
    return data[:2] not in (b"\xff\xfe", b"\xfe\xff") and not (b"\r" in data and b"\n" not in data)


def apply(data: bytes, findings: Iterable[Finding]) -> Applied:
    """Apply all edits of each finding, or none of it; the first of two that overlap wins.

    New lines end in ``\\n`` and are UTF-8, whatever the file has elsewhere; a replaced first line loses its byte
    order mark. All other bytes stay.
    """
    rows = data.split(b"\n")
    taken: list[Edit] = []
    applied: list[Finding] = []
    later: list[Finding] = []
    for finding in findings:
        mine = list(dict.fromkeys(finding.edits))
        if not mine:
            continue
        new = [edit for edit in mine if edit not in taken]
        if all(_fits(edit, len(rows)) for edit in mine) and not _clash(new, taken):
            taken += new
            applied.append(finding)
        else:
            later.append(finding)
    for edit in sorted(taken, key=lambda e: (e.first, not e.insert), reverse=True):
        lines = edit.text.split("\n")
        if lines and lines[-1] == "" and (len(lines) > 1 or not edit.insert):
            lines.pop()  # the last line's end; and an empty text deletes
        put = [line.encode("utf-8", "replace") for line in lines]
        if edit.insert:
            rows[edit.first - 1 : edit.first - 1] = put
        else:
            rows[edit.first - 1 : edit.last] = put
    return Applied(b"\n".join(rows), tuple(applied), tuple(later))


def safe(findings: Iterable[Finding]) -> list[Finding]:
    """Findings whose edits cannot alter what the user asked for."""
    return [finding for finding in findings if finding.edits and all(edit.safe for edit in finding.edits)]


def _fits(edit: Edit, rows: int) -> bool:
    if edit.insert:
        return 1 <= edit.first <= rows + 1
    return 1 <= edit.first <= edit.last <= rows


def _clash(new: Sequence[Edit], taken: Sequence[Edit]) -> bool:
    every = [*taken, *new]
    return any(_overlap(edit, other) for edit in new for other in every if other is not edit)


def _overlap(a: Edit, b: Edit) -> bool:
    if a.insert and b.insert:
        return a.first == b.first  # which of the two comes first is not ours to say
    if a.insert or b.insert:
        put, span = (a, b) if a.insert else (b, a)
        return span.first < put.first <= span.last
    return a.first <= b.last and b.first <= a.last
