"""Regular expressions as Lua patterns. Those have no alternatives, groups or counts: one becomes several."""

from __future__ import annotations

import re
from itertools import product
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

CATEGORIES = {
    sre.CATEGORY_DIGIT: "%d",
    sre.CATEGORY_WORD: "%w_",
    sre.CATEGORY_SPACE: "%s",
    sre.CATEGORY_NOT_DIGIT: "%D",
    sre.CATEGORY_NOT_SPACE: "%S",
}
MOST = 256


def lua_patterns(regex: str) -> list[str]:
    """Lua patterns of which one matches exactly when `regex` is found; ValueError where there are none."""
    patterns = _sequence(parser.parse(regex))
    if len(patterns) > MOST:
        raise ValueError(f"too many alternatives for Lua: {regex}")
    return patterns


def _sequence(items: Any) -> list[str]:
    return ["".join(parts) for parts in product(*[_item(*item) for item in items])]


def _item(kind: Any, value: Any) -> list[str]:
    if kind is sre.LITERAL:
        return [_literal(value)]
    if kind is sre.ANY:
        return ["."]
    if kind is sre.IN:
        return [_set(value)]
    if kind is sre.AT and value in {sre.AT_BEGINNING, sre.AT_BEGINNING_STRING}:
        return ["^"]
    if kind is sre.AT and value in {sre.AT_END, sre.AT_END_STRING}:
        return ["$"]
    if kind is sre.SUBPATTERN:
        return _sequence(value[3])
    if kind is sre.BRANCH:
        return [pattern for branch in value[1] for pattern in _sequence(branch)]
    if kind is sre.MAX_REPEAT:
        return _repeat(*value)
    raise ValueError(f"no Lua pattern for {str(kind).lower()} in a regular expression")


def _repeat(least: int, most: int, items: Any) -> list[str]:
    single = len(items) == 1 and items[0][0] in {sre.LITERAL, sre.ANY, sre.IN}
    if single:
        one = _item(*items[0])[0]
        if most is sre.MAXREPEAT:
            return [one * least + one + "*"]
        return [one * least + (one + "?") * (most - least)]
    if most is sre.MAXREPEAT:
        raise ValueError("no Lua pattern for a repeated group without a limit")
    inside = _sequence(items)
    return ["".join(parts) for count in range(least, most + 1) for parts in product(inside, repeat=count)]


def _literal(code: int) -> str:
    character = chr(code)
    return character if character.isalnum() else re.sub(r"([^\w\s])", r"%\1", character)


def _set(items: Any) -> str:
    words = []
    for kind, value in items:
        if kind is sre.NEGATE:
            words.append("^")
        elif kind is sre.LITERAL:
            words.append(_literal(value))
        elif kind is sre.RANGE:
            words.append(f"{chr(value[0])}-{chr(value[1])}")
        elif kind is sre.CATEGORY and value in CATEGORIES:
            words.append(CATEGORIES[value])
        else:
            raise ValueError("no Lua set for that character class")
    return "[" + "".join(words) + "]"
