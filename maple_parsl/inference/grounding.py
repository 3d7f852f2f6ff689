"""Whether a model's value stands in the request's own words, at a place that says what it is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from maple_parsl.extraction.reading import Reading

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,80}\Z")
_SCRIPT = re.compile(r"[\w~$/][\w./~$-]{0,200}\Z", re.ASCII)
_REACH = 40  # characters between the value and the word that says what it is
_NUMBERS = {
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
}


def grounded(field: str, value: Any, reading: Reading, cues: Iterable[str]) -> tuple[int, int] | str:
    """Start and end of the value in the words; or the reason why it is refused.

    A name must stand there letter by letter, a number as that number; not inside what was read already, and near a
    word that says what it is.
    """
    words = reading.words
    if isinstance(value, bool) or not isinstance(value, int | str):
        return "it is neither text nor a whole number"
    form = _SCRIPT if field == "script" else _NAME
    if isinstance(value, str) and not form.fullmatch(value):
        return "it is no name"
    cue_places = [match.span() for cue in cues for match in re.finditer(rf"\b{re.escape(cue)}\b", words, re.I)]
    reason = "it does not stand in the words"
    for start, end in _places(value, words):
        if any(each.start < end and start < each.end for each in reading.values.values() if each.basis == "stated"):
            reason = "those words say something else"
        elif any(start < b and a < end for a, b in cue_places):
            reason = "it is the word that asks for it"
        elif not any(_near(words, (start, end), place) for place in cue_places):
            reason = f"nothing near it says that it is the {field}"
        else:
            return start, end
    return reason


def _places(value: int | str, words: str) -> list[tuple[int, int]]:
    if isinstance(value, str):
        return [match.span() for match in re.finditer(rf"(?<![\w.-]){re.escape(value)}(?![\w-])", words)]
    spelt = [word for word, number in _NUMBERS.items() if number == value]
    options = "|".join([rf"(?<![\d.]){value}(?![\d.:]*\d)", *(rf"\b{word}\b" for word in spelt)])
    return [match.span() for match in re.finditer(options, words, re.I)]


def _near(words: str, value: tuple[int, int], cue: tuple[int, int]) -> bool:
    between = words[min(value[1], cue[1]) : max(value[0], cue[0])]
    return len(between) <= _REACH and not re.search(r"[.;!?\n]", between)
