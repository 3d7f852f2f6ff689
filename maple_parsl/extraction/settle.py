"""One value per field out of all that were read: corrections win, the past gives way, and a contradiction is said."""

from __future__ import annotations

from collections.abc import Iterable

from maple_parsl.extraction.reading import Issue, Value
from maple_parsl.extraction.sentence import Found, Sentence

_LAST_WINS = frozenset({"script", "args", "model", "precision", "gpu"})
_GUESS = 0.6  # a time that something takes gives way to one that is asked for
_COUNTS = frozenset({"nodes", "gpus", "gpus_total", "gpus_plain"})
_WORDS = {"walltime": "time limit", "gpus": "GPUs per node", "gpus_total": "GPUs in total", "gpus_plain": "GPUs"}


def settle(sentence: Sentence, found: Iterable[Found], errors: list[Issue]) -> dict[str, Value]:
    """The value of every field that has one of its own (paradigms are put together elsewhere)."""
    by_field: dict[str, list[Found]] = {}
    for each in present(found):
        by_field.setdefault(each.field, []).append(each)
    values: dict[str, Value] = {}
    for field, readings in by_field.items():
        chosen = choose(sentence, field, readings, errors)
        if chosen is not None:
            start, end = sentence.place(chosen)
            values[field] = Value(chosen.value, start, end, chosen.sure)
    return values


def present(found: Iterable[Found]) -> list[Found]:
    """What is said of now: where a new site is named beside the old one, nothing said of the old one holds;
    where new counts are, no old one does."""
    every = list(found)
    moved = {each.past for each in every if each.field == "site"} == {True, False}
    counted = {each.past for each in every if each.field in _COUNTS} == {True, False}
    return [each for each in every if not each.past or not (moved or (counted and each.field in _COUNTS))]


def choose(sentence: Sentence, field: str, readings: list[Found], errors: list[Issue]) -> Found | None:
    """The reading that counts; contradictions are added to ``errors``."""
    now = [each for each in readings if not each.past] or readings
    now.sort(key=lambda each: each.first)
    corrected = [each for each in now if each.corrected and each is not now[0]]
    if corrected:
        return corrected[-1]
    values = list(dict.fromkeys(_key(each) for each in now))
    if len(values) < 2:
        return max(now, key=lambda each: each.sure)
    if field == "model":
        return max(now, key=lambda each: (each.sure, len(str(each.value))))
    if field in _LAST_WINS:
        return max(now, key=lambda each: each.sure)
    if field == "walltime":
        stated = [each for each in now if each.value is not None]
        surest = [each for each in stated if each.sure == 1.0] or [each for each in stated if each.sure > _GUESS]
        if len({each.value for each in surest or stated}) == 1:
            return (surest or stated)[0]
        now = surest or stated
    first, other = now[0], next(each for each in now if _key(each) != _key(now[0]))
    if field in ("nodes", "gpus", "gpus_total", "walltime", "account", "queue", "site"):
        one, two = (sentence.text[slice(*sentence.place(each))] for each in (first, other))
        errors.append(
            Issue(
                "CONTRADICTION",
                f"two values for {_WORDS.get(field, field)}: {one!r} and {two!r}",
                "say which one holds",
                *sentence.place(other),
            )
        )
    return first


def _key(each: Found) -> object:
    return each.value.lower() if isinstance(each.value, str) else each.value
