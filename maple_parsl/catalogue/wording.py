"""What is wrong with a site, in words for the person who edits its file."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from maple_parsl.catalogue.record import Origin
from maple_parsl.catalogue.schema import is_collection, model_at
from maple_parsl.errors import ConfigurationError

_MOST = 12
_WANTED = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "text in quotes",
    "date": "a date such as 2026-01-31, without quotes",
    "tuple": "a list, in [ ]",
    "dict": "a table",
    "model": "a table",
}
_KINDS = (
    (bool, "true or false"),
    (str, "the text"),
    (list, "a list"),
    (dict, "a table"),
    (int | float, "the number"),
)


def explain(
    name: str, error: ValidationError, data: Mapping[str, Any], origins: Mapping[str, Origin]
) -> ConfigurationError:
    """Every fault with its file, its key and what to do."""
    faults: dict[tuple[str, str], list[str]] = {}
    missing: dict[tuple[str | int, ...], list[str]] = {}
    for item in error.errors(include_url=False):
        loc = tuple(item["loc"])
        if item["type"] == "missing":
            missing.setdefault(loc[:-1], []).append(str(loc[-1]))
        else:
            loc, text = _fault(loc, dict(item), data)
            faults.setdefault(_place(loc, data, origins), []).append(text)
    for loc, keys in missing.items():
        faults.setdefault(_place(loc, data, origins), []).append(_lacks(loc, keys, data))
    lines = [
        f"{file}: {key + ': ' if key else ''}{text}"
        for (file, key), texts in faults.items()
        for text in dict.fromkeys(texts)
    ]
    if len(lines) == 1:
        return ConfigurationError(lines[0])
    more = [f"… and {len(lines) - _MOST} more"] if len(lines) > _MOST else []
    shown = "".join(f"\n  - {line}" for line in lines[:_MOST] + more)
    return ConfigurationError(f"the site {name} cannot be used:{shown}")


def _fault(
    loc: tuple[str | int, ...], item: Mapping[str, Any], data: Mapping[str, Any]
) -> tuple[tuple[str | int, ...], str]:
    kind, context = str(item["type"]), item.get("ctx", {})
    if loc and loc[-1] == "[key]":
        return loc[:-1], "this name is not allowed: letters, digits and . _ + - only, without blanks"
    value = _shown(item.get("input"))
    if kind == "extra_forbidden":
        return loc, f"unknown key{_near(str(loc[-1]), _keys(loc[:-1]))}"
    if kind == "literal_error":
        if loc == ("format",):
            return loc, f"this Maple reads format 1, not {value}; install a newer Maple"
        return loc, f"must be {context.get('expected', 'another value')}, not {value}"
    if kind == "value_error":
        return loc, str(context.get("error") or item["msg"])
    if kind == "string_pattern_mismatch":
        return loc, f"{value} does not have the form {context.get('pattern')}"
    if kind in ("too_short", "string_too_short"):
        return loc, "must not be empty"
    if wanted := _WANTED.get(kind.partition("_")[0]):
        return loc, f"must be {wanted}, not {value}"
    return loc, f"{item['msg'][:1].lower()}{item['msg'][1:]} (it is {value})"


def _lacks(loc: tuple[str | int, ...], keys: Sequence[str], data: Mapping[str, Any]) -> str:
    text = f"lacks {', '.join(keys)}"
    if loc and is_collection(loc[:-1]):
        table: Any = data
        for key in loc[:-1]:
            table = table[key]
        others = [str(key) for key in table if key != loc[-1]]
        near = _near(str(loc[-1]), others)
        return f"{text}; a new entry must be whole{near.replace(';', ', or')}"
    return f"{text}; state {'it' if len(keys) == 1 else 'them'}"


def _near(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=2, cutoff=0.6)
    if near:
        return f"; did you mean {' or '.join(near)}?"
    return f"; known here: {', '.join(known)}" if known else ""


def _keys(loc: tuple[str | int, ...]) -> list[str]:
    model = model_at(loc)
    return list(model.model_fields) if model else []


def _place(loc: Sequence[str | int], data: Mapping[str, Any], origins: Mapping[str, Origin]) -> tuple[str, str]:
    """The file to edit and the dotted key in it."""
    parts: list[str] = []
    here: Any = data
    for key in loc:
        try:
            here = here[key]
        except (KeyError, IndexError, TypeError):
            here = None
        parts.append(str(here.get("name", key + 1)) if isinstance(key, int) and isinstance(here, dict) else str(key))
    dotted = ".".join(parts)
    at = dotted
    while at:
        inside = [origin for key, origin in origins.items() if key == at or key.startswith(f"{at}.")]
        if inside:
            # The highest layer is listed by its own leaves; a fault in a merged group is most likely there.
            above = [origin for origin in inside if origin.layer != "catalogue"]
            return str((above or inside)[-1].file), dotted
        at = at.rpartition(".")[0]
    files = dict.fromkeys(str(origin.file) for origin in origins.values())
    return " and ".join(files) or "the site", dotted


def _shown(value: Any) -> str:
    text = repr(value) if not isinstance(value, bool) else str(value).lower()
    text = text if len(text) <= 60 else f"{text[:57]}…"
    for kind, word in _KINDS:
        if isinstance(value, kind):
            return word if word.startswith("a ") else f"{word} {text}" if kind is not bool else text
    return text
