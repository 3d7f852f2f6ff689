"""``maple sites show``: every value of a site, in its group, with the source behind it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from maple_parsl.catalogue import Catalogue, Origin, SiteRecord
from maple_parsl.cli.output import clean, console, emit_json

_NAMED = ("kinds", "launchers", "environments")


def show_site(name: str, origins: bool, as_json: bool) -> None:
    """Print a site."""
    record = Catalogue.load().get(name)
    if as_json:
        emit_json(
            {
                "site": record.site.model_dump(mode="json", exclude_none=True),
                "origins": record.origins,
                "files": record.files,
                "notices": record.notices,
            }
        )
        return
    from rich.table import Table

    out = console()
    for group, values in groups(record).items():
        origin = record.origin(group or "name")
        out.print(clean(group or record.site.name), style="bold")
        out.print(clean(f"  {_behind(origin, origins)}"), style="dim", overflow="fold")
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
        table.add_column(width=2)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        table.add_column(overflow="fold", style="dim")
        for key, value in values.items():
            mine = record.origin(f"{group}.{key}" if group else key)
            # The heading speaks for the values that share its origin.
            behind = _behind(mine, True) if mine != origin else "as above" if origins else ""
            table.add_row("", clean(key), clean(shown(value)), clean(behind))
        out.print(table)
    for notice in record.notices:
        console(stderr=True).print(clean(f"note: {notice}"))


def groups(record: SiteRecord) -> dict[str, dict[str, Any]]:
    """The stated values by group: the top level, each table, and each entry of the named ones."""
    made: dict[str, dict[str, Any]] = {"": {}}
    for key, value in _values(record.site.model_dump(mode="json", exclude_unset=True), ""):
        parts = key.split(".")
        depth = 2 if parts[0] in _NAMED else 3 if key.startswith("queues.entry.") else 1
        depth = min(depth, len(parts) - 1)
        group, rest = ".".join(parts[:depth]), ".".join(parts[depth:])
        if rest not in ("source", "checked_on"):
            made.setdefault(group, {})[rest] = value
    return made


def _values(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    if key == "queues.entry":
        value = {queue["name"]: {k: v for k, v in queue.items() if k != "name"} for queue in value}
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _values(inner, f"{key}.{name}" if key else name)
    elif value is not None:
        yield key, value


def shown(value: Any) -> str:
    """A value as text, a line per part of a list."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return "\n".join(shown(inner) for inner in value) if value else "(none)"
    if isinstance(value, dict):
        return ", ".join(f"{key} {shown(inner)}" for key, inner in value.items() if inner is not None)
    return value if isinstance(value, str) else json.dumps(value)


def _behind(origin: Origin, with_file: bool) -> str:
    own = origin.source == str(origin.file)
    source = "stated in that file" if own and with_file else origin.source
    place = f"{origin.layer} file {origin.file}: " if with_file else ""
    return f"{place}{source}, checked {origin.checked_on}"
