"""A report for people: each finding with the line it is about and a caret under the place."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from maple_parsl.checking.report import FileReport, Report
from maple_parsl.finding import Finding
from maple_parsl.terminal import clean, shown, width

_COLOURS = {"error": "1;31", "warning": "1;33", "note": "1;36", "strong": "1", "frame": "34", "dim": "2"}
_NARROWEST = 40


class Painter:
    """Text with colours, or without."""

    def __init__(self, colour: bool = False, columns: int = 100) -> None:
        self.colour, self.columns = colour, max(_NARROWEST, columns)

    def paint(self, text: str, style: str) -> str:
        return f"\x1b[{_COLOURS[style]}m{text}\x1b[0m" if self.colour and text else text

    def wrapped(self, label: str, text: str, indent: int) -> Iterator[str]:
        """``label: text`` on as many lines as it takes."""
        room = max(20, self.columns - indent - len(label) - 2)
        lines = textwrap.wrap(_flat(text), room, break_long_words=False, break_on_hyphens=False)
        for number, line in enumerate(lines or [""]):
            head = self.paint(f"{label}:", "strong") if number == 0 else " " * (len(label) + 1)
            yield f"{' ' * indent}{head} {line}"


def as_text(report: Report, painter: Painter | None = None, *, strict: bool = False) -> str:
    """All findings, what was not checked, and a line that sums it up."""
    painter = painter or Painter()
    lines: list[str] = []
    for file in report.files:
        if file.why:
            lines += [f"{clean(shown(file.file))}: taken for a script of {file.site}, by {_list(file.why)}", ""]
        for finding in file.findings:
            lines += [*_finding(file, finding, painter), ""]
    lines += [*_questions(report), *(f"note: {_flat(notice)}" for notice in report.notices)]
    lines.append(_summary(report, painter))
    return "\n".join(lines) + "\n"


def _finding(file: FileReport, finding: Finding, painter: Painter) -> Iterator[str]:
    where = clean(shown(file.file))
    if finding.line:
        where += f":{finding.line}" + (f":{finding.column}" if finding.column else "")
    head = f"{painter.paint(where, 'strong')}: {painter.paint(finding.severity, finding.severity)}"
    name = painter.paint(f"[{finding.rule}]", "dim")
    room = painter.columns - len(where) - len(finding.severity) - 4
    message = f"{_flat(finding.message)} [{finding.rule}]"
    if len(message) <= room:
        yield f"{head}: {_flat(finding.message)} {name}"
    else:
        yield f"{head} {name}"
        yield from textwrap.wrap(
            _flat(finding.message), painter.columns - 2, initial_indent="  ", subsequent_indent="  ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
    margin = 0
    row = file.row(finding)
    if finding.line and row.strip():
        margin = len(str(finding.line)) + 1
        yield from _frame(row, finding, painter)
    if finding.evidence:
        yield from painter.wrapped("why", finding.evidence, margin + 3 if margin else 2)
    if finding.fix:
        yield from painter.wrapped("fix", finding.fix, margin + 3 if margin else 2)


def _frame(row: str, finding: Finding, painter: Painter) -> Iterator[str]:
    """The source line, and a caret under the column; a long line is cut around it."""
    number = str(finding.line)
    column = min(max(1, finding.column or 1), len(row) + 1)
    before, behind = shown(row[: column - 1]).expandtabs(8), row[column - 1 :]
    text = before + shown(behind).replace("\t", "    ")
    room = max(20, painter.columns - len(number) - 5)
    start = 0
    if width(text) > room:
        start = max(0, min(len(before) - room // 2, len(text) - room))
        while len(before) > start and width(text[start : len(before)]) > room // 2:
            start += 1
    cut = text[start:]
    while width(cut) > room - 1:
        cut = cut[: min(len(cut) - 1, room - 1)]
    left, right = ("…" if start else ""), ("…" if start + len(cut) < len(text) else "")
    if left:
        cut = cut[1:]
    pad = width(before) if not start else 1 + width(text[start + 1 : len(before)])
    bar = painter.paint("|", "frame")
    yield f" {painter.paint(number, 'frame')} {bar} {left}{cut.rstrip()}{right}"
    if finding.column:
        yield f" {' ' * len(number)} {bar} {' ' * pad}{painter.paint('^', finding.severity)}"


def _questions(report: Report) -> Iterator[str]:
    for file in report.files:
        if file.site is None and file.not_applied:
            count = len(file.not_applied)
            maybe = f" (perhaps {' or '.join(file.candidates)})" if file.candidates else ""
            rules = "1 rule was" if count == 1 else f"{count} rules were"
            yield f"{clean(shown(file.file))}: which site is it for{maybe}? --site ...: {rules} not applied"


def _summary(report: Report, painter: Painter) -> str:
    parts = []
    for severity in ("error", "warning", "note"):
        count = report.counts[severity]
        if count:
            parts.append(painter.paint(f"{count} {severity}{'s' if count > 1 else ''}", severity))
    files = f"{len(report.files)} file{'' if len(report.files) == 1 else 's'}"
    known = f" ({report.known} known, not shown)" if report.known else ""
    return f"{files} checked: {', '.join(parts) or 'nothing found'}{known}"


def _flat(text: str) -> str:
    return " ".join(clean(text).split())


def _list(items: tuple[str, ...]) -> str:
    flat = [_flat(item) for item in items]
    return flat[0] if len(flat) == 1 else f"{', '.join(flat[:-1])} and {flat[-1]}"
