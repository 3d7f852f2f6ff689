"""Laying site files over one another, with the origin of every value.

A file becomes a tree: tables are dicts, every other value is a :class:`Leaf` with its origin, and the queues
become a table by name. Laying trees over one another is then one recursive union, which is associative.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Union

from maple_parsl.catalogue.record import Origin
from maple_parsl.catalogue.schema import is_facts
from maple_parsl.errors import ConfigurationError

Path = tuple[str, ...]
QUEUES: Path = ("queues", "entry")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value that layers replace as a whole."""

    value: Any
    origin: Origin


Tree = dict[str, Union["Tree", Leaf]]


def annotate(data: Mapping[str, Any], origin: Origin) -> Tree:
    """The tree of one file. ``origin`` has its layer, and the source and date where it states none."""
    return _annotate(data, origin, ())


def overlay(below: Tree, above: Tree, path: Path = ()) -> Tree:
    """``above`` laid over ``below``; neither is changed."""
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        if old is None:
            result[key] = value
        elif isinstance(old, dict) and isinstance(value, dict):
            result[key] = overlay(old, value, (*path, key))
        elif isinstance(old, Leaf) and isinstance(value, Leaf):
            if not (key == "name" and path[:-1] == QUEUES):  # the scheduler knows the first spelling
                result[key] = value
        else:
            shape, other = ("a table", "a value") if isinstance(value, dict) else ("a value", "a table")
            raise ConfigurationError(
                f"{_any_file(value)}: {'.'.join((*path, key))}: is {shape} here, but {other} in"
                f" {_any_file(old)}; write it the same way"
            )
    return result


def complete(tree: Tree, path: Path = ()) -> Tree:
    """The tree with a source and a date for every group of facts that only people's own files state."""
    result: Tree = {
        key: complete(value, (*path, key)) if isinstance(value, dict) else value for key, value in tree.items()
    }
    stated = [leaf.origin for _, leaf in leaves(result, path)]
    if is_facts(path) and stated and all(origin.layer != "catalogue" for origin in stated):
        result.setdefault("source", Leaf(stated[0].source, stated[0]))
        result.setdefault("checked_on", Leaf(stated[0].checked_on, stated[0]))
    return result


def plain(tree: Tree, path: Path = ()) -> Any:
    """The values alone, as the file would state them."""
    values = {k: plain(v, (*path, k)) if isinstance(v, dict) else v.value for k, v in tree.items()}
    return list(values.values()) if path == QUEUES else values


def leaves(tree: Tree, path: Path = ()) -> Iterator[tuple[Path, Leaf]]:
    """Every value with its path, in which a queue has its name as it is spelt."""
    for key, value in tree.items():
        if path == QUEUES and isinstance(value, dict) and isinstance(name := value.get("name"), Leaf):
            key = name.value
        if isinstance(value, dict):
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value


def _annotate(data: Mapping[str, Any], origin: Origin, path: Path) -> Tree:
    source, checked = data.get("source"), data.get("checked_on")
    if isinstance(source, str):
        origin = replace(origin, source=source)
    if type(checked) is date:
        origin = replace(origin, checked_on=checked)
    tree: Tree = {}
    for key, value in data.items():
        here = (*path, key)
        if here == QUEUES:
            value = _by_name(value, origin)
        tree[key] = _annotate(value, origin, here) if isinstance(value, dict) else Leaf(value, origin)
    if isinstance(source, str) and origin.layer != "catalogue" and is_facts(path):
        tree.setdefault("checked_on", Leaf(origin.checked_on, origin))
    return tree


def _by_name(value: Any, origin: Origin) -> dict[str, Any]:
    where = f"{origin.file}: queues.entry"
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise ConfigurationError(f"{where}: must be tables; write each queue as [[queues.entry]]")
    queues: dict[str, Any] = {}
    for number, entry in enumerate(value, 1):
        name = entry.get("name")
        if not isinstance(name, str):
            raise ConfigurationError(f'{where}: queue {number} has no name; add name = "..."')
        if name.lower() in queues:
            raise ConfigurationError(f"{where}.{name}: there are two queues of this name; keep one")
        queues[name.lower()] = entry
    return queues


def _any_file(value: Tree | Leaf) -> str:
    if isinstance(value, Leaf):
        return str(value.origin.file)
    return next((str(leaf.origin.file) for _, leaf in leaves(value)), "another file")
