"""The statements of a script, as its lines hold them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from maple_parsl.script.syntax import Code
from maple_parsl.script.text import Lines

if TYPE_CHECKING:
    from maple_parsl.script.model import Script

COMPOUND = frozenset(
    "function_definition if_statement for_statement c_style_for_statement while_statement case_statement"
    " compound_statement subshell".split()
)


@dataclass(frozen=True)
class Statement:
    """Whole lines of a script: first and last line (from 1), their text, the kinds of what stands in them."""

    first: int
    last: int
    text: str
    kinds: frozenset[str]

    @property
    def comment(self) -> bool:
        return self.kinds == {"comment"}

    @property
    def compound(self) -> str | None:
        """A function, condition or loop, in words."""
        names = {"function_definition": "a function", "if_statement": "a condition", "case_statement": "a condition"}
        for kind in sorted(self.kinds & COMPOUND):
            return names.get(kind, "a loop" if "for" in kind or "while" in kind else "a group of commands")
        return None

    def holds(self, line: int) -> bool:
        return self.first <= line <= self.last


def statements(script: Script) -> list[Statement]:
    """Every statement at the outermost level, in order; those that share a line are one. Directives are comments."""
    code = Code(script.text, Lines(script.text))
    found: list[tuple[int, int, set[str]]] = []
    for node in code.tree().children:
        if not node.is_named:
            continue
        # By bytes: the grammar sees a text whose lines may be joined.
        start = node.start_byte
        while code.data[start : start + 1] == b"\n":
            start += 1
        first, last = code.place(start).line, code.place(max(start, node.end_byte - 1)).line
        if found and first <= found[-1][1]:
            before = found.pop()
            found.append((before[0], max(last, before[1]), before[2] | ({node.type} - {"comment"} or before[2])))
        else:
            found.append((first, last, {node.type}))
    rows = script.rows
    return [Statement(a, b, "\n".join(rows[a - 1 : b]), frozenset(kinds)) for a, b, kinds in found]
