"""Numbers in words: ``twenty-four``, ``two dozen``, ``a hundred and twenty eight``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from maple_parsl.extraction.lexer import Item

_MINUS = frozenset({"minus", "negative"})
_SCALES = frozenset({"hundred", "thousand", "dozen"})


def merged(found: list[Item]) -> list[Item]:
    """Runs of number words become one number; ``a dozen``, ``half a dozen`` too."""
    made: list[Item] = []
    at = 0
    while at < len(found):
        if found[at].low in _MINUS and at + 1 < len(found):
            number, used = _run(found, at + 1) or (found[at + 1].value, found[at + 1].letter in "#N")
            if used:
                last = found[at + used]
                made.append(replace(last, letter="N", value=-number, start=found[at].start))
                at += 1 + used
                continue
        run = _run(found, at)
        if run is None:
            made.append(found[at])
            at += 1
            continue
        value, used = run
        first, last = found[at], found[at + used - 1]
        words = " ".join(item.text for item in found[at : at + used])
        made.append(replace(first, letter="N", value=value, text=words, low=words.lower(), end=last.end))
        at += used
    return made


def _run(found: list[Item], at: int) -> tuple[int, int] | None:
    start = at
    half = found[at].low == "half"
    if half:
        at += 1
    if at < len(found) and found[at].low in ("a", "an") and at + 1 < len(found) and _named(found[at + 1]):
        at += 1
    elif half and not (at < len(found) and found[at].low == "dozen"):
        return None
    if at >= len(found) or found[at].letter not in "#N" or (found[at].letter == "N" and not _scale(found, at + 1)):
        return None
    if found[at].letter == "N" and not isinstance(found[at].value, int):
        return None
    total = 0
    current = int(found[at].value) if not _scale(found, at) else 0
    at += 0 if _scale(found, at) else 1
    while at < len(found):
        item = found[at]
        if _scale(found, at):
            current = (current or 1) * int(item.value)
            if item.low == "thousand":
                total, current = total + current, 0
        elif (item.letter == "#" and current % 100 in range(20, 100, 10) and 0 < item.value < 10) or (
            item.letter == "#" and current and current % 100 == 0 and item.value < 100
        ):
            current += int(item.value)
        elif (
            item.letter == "y"
            and current
            and current % 100 == 0
            and at + 1 < len(found)
            and found[at + 1].letter == "#"
        ) or (
            item.letter == "_" and at + 1 < len(found) and found[at + 1].letter == "#" and current in range(20, 100, 10)
        ):
            pass
        else:
            break
        at += 1
    value = total + current
    return (value // 2 if half else value), at - start


def _named(item: Item) -> bool:
    return item.letter == "#" and (item.low in _SCALES or item.low.startswith(("couple", "pair", "single")))


def _scale(found: list[Item], at: int) -> bool:
    return at < len(found) and found[at].letter == "#" and found[at].low in _SCALES
