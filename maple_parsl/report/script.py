"""The script of a run with the origin of each line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from itertools import groupby

from maple_parsl.explain import Explained, explain
from maple_parsl.plan import Plan
from maple_parsl.report.text import Shown, without_values
from maple_parsl.script.render import FIXED


def script(plan: Plan, shown: Shown) -> str:
    """The script as HTML; parts that are the same in every script are folded."""
    made = "".join(_parts(plan, shown))
    return f'<div class="code">{made}</div>'


def _parts(plan: Plan, shown: Shown) -> Iterator[str]:
    masked = without_values(plan)
    for folded, group in groupby(_marked(explain(plan)), key=lambda pair: pair[0]):
        block = [line for _, line in group]
        made, before = "", ""
        for line in block:
            why = _why(line, shown)
            made += _row(line, masked.get(line.text, line.text), "" if why == before else why, shown)
            before = why
        if folded:
            head = f"lines {block[0].number} to {block[-1].number}: Maple's own, the same in every script"
            yield f"<details><summary>{head}</summary>{made}</details>"
        else:
            yield made


def _marked(all_lines: Iterable[Explained]) -> Iterator[tuple[bool, Explained]]:
    """Each line, and whether it is of a part that is the same in every script."""
    ends = ""
    for line in all_lines:
        if line.text == ends:
            ends = ""
        yield bool(ends), line
        ends = ends or next((last for first, last in FIXED if line.text.startswith(first)), "")


def _why(line: Explained, shown: Shown) -> str:
    source = f" · {shown.html(line.source)}, checked {line.checked_on}" if line.source else ""
    return f'<small class="{escape(line.layer)}"><b>{escape(line.layer)}</b> {shown.html(line.why)}{source}</small>'


def _row(line: Explained, text: str, why: str, shown: Shown) -> str:
    return f'<div class="line"><i>{line.number}</i><div>{why}<code>{shown.html(text)}</code></div></div>'
