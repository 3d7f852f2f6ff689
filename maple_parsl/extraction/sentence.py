"""A request as items and letters: what is negated, what was said before it was corrected, what lies in the past."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from maple_parsl.extraction.lexer import Item

_CONTENT = frozenset("AFSMLBRGgtqN@HnZ")
_PASSING = frozenset('io?W_FLyTe"')
_ENDS = frozenset(".;\n")
_ORDERS = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b[^.!?\n]{0,40}\b(?:instructions?|prompts?|rules|above|guidelines)\b", re.I
)


@dataclass(frozen=True, slots=True)
class Found:
    """A value of a field, read from items ``first`` to ``last`` (both included)."""

    field: str
    value: Any
    first: int
    last: int
    sure: float = 1.0
    corrected: bool = False
    past: bool = False


class Sentence:
    """The items of a text; ``letters`` has one letter per item, ``0`` for what is negated or already read."""

    def __init__(self, text: str, items: list[Item]) -> None:
        self.text, self.items = text, items
        self._letters = [item.letter for item in items]
        self.negated: set[int] = set()
        self._past: set[int] = set()
        self._set_aside()
        self._negate()
        self._mark_past()
        self.letters = "".join(self._letters)

    def find(self, pattern: str) -> Iterator[re.Match[str]]:
        """Where the letters fit a pattern."""
        yield from list(re.finditer(pattern, self.letters))

    def claim(self, first: int, last: int) -> None:
        """Items that have been read, so that nothing else is read from them."""
        self._letters[first : last + 1] = "0" * (last + 1 - first)
        self.letters = "".join(self._letters)

    def found(self, field: str, value: Any, first: int, last: int, sure: float = 1.0) -> Found:
        """A value with what its place says of it."""
        least = min([sure, *(item.sure for item in self.items[first : last + 1])])
        return Found(field, value, first, last, least, self.after_correction(first), first in self._past)

    def after_correction(self, at: int) -> bool:
        """Whether these words put earlier ones right: ``no, make it 8``, ``sorry, 2h``."""
        for before in range(at - 1, max(-1, at - 7), -1):
            letter = self._letters[before]
            if letter == "~":
                return True
            if letter in ".;\n" and before < at - 3:
                return False
        return False

    def place(self, found: Found) -> tuple[int, int]:
        """Start and end of a value in the text."""
        return self.items[found.first].start, self.items[found.last].end

    def low(self, at: int) -> str:
        """The text of an item in lower case; empty beyond the ends."""
        return self.items[at].low if 0 <= at < len(self.items) else ""

    def letter(self, at: int) -> str:
        """The letter of an item; empty beyond the ends."""
        return self.letters[at] if 0 <= at < len(self.items) else ""

    def _set_aside(self) -> None:
        """A sentence that gives orders to the reader is no part of the request."""
        for match in _ORDERS.finditer(self.text):
            start = max(self.text.rfind(mark, 0, match.start()) for mark in ".!?\n") + 1
            ends = [at for mark in ".!?\n" if (at := self.text.find(mark, match.end())) >= 0]
            for at, item in enumerate(self.items):
                if start <= item.start < min(ends, default=len(self.text)):
                    self._letters[at] = "0"

    def _negate(self) -> None:
        letters, items = self._letters, self.items
        for at, letter in enumerate(letters):
            if letter == "!":
                if at + 1 >= len(letters) or letters[at + 1] in ",.;:~)\n_" or (letters[at + 1 : at + 2] == ["!"]):
                    if items[at].low in ("no", "not"):
                        letters[at] = "~"  # "4 nodes, no, make it 8"
                    continue
                self._negate_from(at + 1)
            elif letter == "f":
                self._negate_origin(at + 1)

    def _negate_from(self, at: int) -> None:
        letters, passed = self._letters, 0
        while at < len(letters) and passed < 5:
            if letters[at] in _CONTENT:
                kind = letters[at]
                self._drop(at)
                if kind == "N" and at + 1 < len(letters) and letters[at + 1] in "ngtU":
                    self._drop(at + 1)
                    at += 1
                run = at + 1
                while run < len(letters) and letters[run] == kind and kind in "AF":
                    self._drop(run)
                    run += 1
                nxt = run
                if nxt + 1 < len(letters) and (letters[nxt] == "|" or self.items[nxt].low == "nor"):
                    at, passed = nxt + 1, 0
                    continue
                return
            if letters[at] not in _PASSING:
                return
            at, passed = at + 1, passed + 1

    def _negate_origin(self, at: int) -> None:
        """``from X to Y``: X is what it was."""
        letters = self._letters
        for here in range(at, min(at + 4, len(letters))):
            if letters[here] in "SAFM":
                if any(
                    self.items[k].low in ("to", "onto", "over to") for k in range(here + 1, min(here + 6, len(letters)))
                ):
                    self._drop(here)
                return
            if letters[here] == "N" and here + 1 < len(letters):
                to = here + 1 if self.items[here + 1].low == "to" else here + 2
                if to < len(letters) and self.items[to].low == "to":
                    for k in range(here, to):
                        self._drop(k)
                return
            if letters[here] not in "io?":
                return

    def _drop(self, at: int) -> None:
        self.negated.add(at)
        self._letters[at] = "0"

    def _mark_past(self) -> None:
        start = 0
        for end in range(len(self._letters) + 1):
            over = (
                end == len(self._letters)
                or self._letters[end] in _ENDS
                or self.items[end].low in ("now", "but", "today", "this time", "so")
            )
            if over:
                if "<" in self._letters[start:end]:
                    self._past.update(range(start, end))
                start = end + 1
