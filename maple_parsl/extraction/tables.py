"""Rows of a table drawn with bars: what stands in the first cell is a label of the second."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from maple_parsl.extraction.lexer import Item

_ROW = re.compile(r"^[ \t]*\|([^|\n]+)(\|)([^|\n]+)(\|)?[ \t]*$", re.M)


def cells(text: str, found: list[Item]) -> list[Item]:
    """The items with the bar between two cells as a colon, and the outer ones as line ends."""
    if "|" not in text:
        return found
    inner = {match.start(2) for match in _ROW.finditer(text)}
    if not inner:
        return found
    return [
        replace(item, letter=":" if item.start in inner else "\n") if item.text == "|" and item.letter == "%" else item
        for item in found
    ]
