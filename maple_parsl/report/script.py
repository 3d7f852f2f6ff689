"""The script of a run with the origin of each line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from itertools import groupby

from maple_parsl.plan import Origin, Plan
from maple_parsl.report.text import Shown, without_values
from maple_parsl.script.render import FIXED, lines


@dataclass(frozen=True)
class Line:
    """One line, from 1, and why it is there; None for text that is the same in every script."""

    number: int
    text: str
    origin: Origin | None


def explained(plan: Plan) -> list[Line]:
    """Every line of the script with its origin. The only place where the page asks for it."""
    return [Line(number, part.text, part.origin) for number, part in enumerate(lines(plan), 1)]


def script(plan: Plan, shown: Shown) -> str:
    """The script as HTML, fixed parts folded."""
    made = "".join(_parts(plan, shown))
    return f'<div class="code">{made}</div>'


def _parts(plan: Plan, shown: Shown) -> Iterator[str]:
    masked = without_values(plan)
    for folded, group in groupby(_marked(explained(plan)), key=lambda pair: pair[0]):
        block = [line for _, line in group]
        made = "".join(_row(line, masked.get(line.text, line.text), shown) for line in block)
        if folded:
            head = f"lines {block[0].number} to {block[-1].number}: Maple's own, the same in every script"
            yield f"<details><summary>{head}</summary>{made}</details>"
        else:
            yield made


def _marked(all_lines: Iterable[Line]) -> Iterator[tuple[bool, Line]]:
    """Each line, and whether it is of a part that is the same in every script."""
    ends = ""
    for line in all_lines:
        if line.text == ends:
            ends = ""
        yield bool(ends), line
        ends = ends or next((last for first, last in FIXED if line.text.startswith(first)), "")


def _row(line: Line, text: str, shown: Shown) -> str:
    origin, why = line.origin, ""
    if origin is not None:
        source = f" · {shown.html(origin.source)}, checked {origin.checked_on}" if origin.source else ""
        why = f'<small class="{origin.layer}"><b>{escape(origin.layer)}</b> {shown.html(origin.why)}{source}</small>'
    return f'<div class="line"><i>{line.number}</i><div><code>{shown.html(text)}</code>{why}</div></div>'
