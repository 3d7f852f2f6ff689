"""A site file in the making: every fact with what told it, and what is unknown kept unknown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

Value = str | int | float | bool | list[Any] | dict[str, Any]
EDIT = "EDIT"
_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


@dataclass(frozen=True, slots=True)
class Fact:
    """One value, or None where it is unknown.

    Attributes:
        by: the command that told it, or why it is unknown. edit: a placeholder that a person must replace.
    """

    value: Value | None
    by: str
    edit: bool = False


@dataclass
class Draft:
    """Tables of facts by their dotted name, and the queues.

    Attributes:
        host: where the commands ran. queues: one table each. notes: what a person should know.
    """

    name: str
    title: str
    host: str
    day: date
    tables: dict[str, dict[str, Fact]] = field(default_factory=dict)
    queues: list[dict[str, Fact]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def put(self, table: str, key: str, value: Value, by: str) -> None:
        """State a fact; a later one replaces an earlier one."""
        self.tables.setdefault(table, {})[key] = Fact(value, by)

    def ask(self, table: str, key: str, value: Value, why: str) -> None:
        """A key that the file must have and nobody told: a placeholder, unless it is a fact already."""
        known = self.tables.setdefault(table, {}).get(key)
        if known is None or known.value is None:
            self.tables[table][key] = Fact(value, why, edit=True)

    def unknown(self, table: str, key: str, why: str) -> None:
        """A key worth looking up, commented out; a fact that is there stays."""
        self.tables.setdefault(table, {}).setdefault(key, Fact(None, why))

    def lay_over(self, other: Draft) -> None:
        """What the other draft knows replaces what is unknown or a placeholder here."""
        for table, facts in other.tables.items():
            mine = self.tables.setdefault(table, {})
            for key, fact in facts.items():
                old = mine.get(key)
                if fact.value is not None and not fact.edit and (old is None or old.value is None or old.edit):
                    mine[key] = fact
        self.queues = self.queues or other.queues
        self.notes += other.notes

    @property
    def placeholders(self) -> list[str]:
        """The keys that a person must fill in."""
        return [f"{table}.{key}" for table, facts in self.tables.items() for key, fact in facts.items() if fact.edit]

    @property
    def known(self) -> int:
        """How many facts are stated."""
        rows = [*self.tables.values(), *self.queues]
        return sum(1 for facts in rows for fact in facts.values() if fact.value is not None and not fact.edit)


def text(draft: Draft) -> str:
    """The draft as a site file."""
    return "\n".join(_lines(draft)) + "\n"


def _lines(draft: Draft) -> Iterator[str]:
    yield f"# The site {draft.name}, drafted on {draft.day} from read-only commands on {draft.host}."
    yield "# Behind each value: the command that told it. What is commented out is unknown, and stays so until you"
    yield "# know it; EDIT marks what must be filled in. `maple sites check` lists what is left to do."
    for note in draft.notes:
        yield f"# Note: {_flat(note)}"
    yield "format = 1"
    yield f"name = {toml(draft.name)}"
    yield f"title = {toml(draft.title)}"
    for table in sorted(draft.tables, key=_order):
        facts = draft.tables[table]
        yield from ("", f"[{table}]")
        if table != "defaults" and table.count(".") < 2:  # variables of an environment are no group of facts
            yield from _source(draft, facts)
        yield from _rows(facts)
    if draft.queues:
        yield from ("", "[queues]", *_source(draft, *draft.queues))
        for queue in draft.queues:
            yield from ("", "[[queues.entry]]", *_rows(queue))


def _source(draft: Draft, *groups: Mapping[str, Fact]) -> Iterator[str]:
    """Where the group's facts come from: the commands; a placeholder makes the whole group one to fill in."""
    facts = [fact for group in groups for fact in group.values()]
    stated = [fact.by for fact in facts if fact.value is not None and not fact.edit]
    told = dict.fromkeys(by.partition(": ")[0] for by in stated)  # the key behind it stands with the value
    words = f"on {draft.host}: {'; '.join(told)}" if told else f"probed on {draft.host}; no command told anything of it"
    if any(fact.edit for fact in facts):
        words = f"{EDIT}: some values are placeholders. {words}"
    yield f"source = {toml(_flat(words))}"
    yield f"checked_on = {draft.day.isoformat()}"


def _rows(facts: Mapping[str, Fact]) -> Iterator[str]:
    for key, fact in facts.items():
        shown = key if _BARE.match(key) else toml(key)
        if fact.value is None:
            yield f"# {shown} =    # unknown: {_flat(fact.by)}"
        else:
            yield f"{shown} = {toml(fact.value)}    # {'EDIT: ' if fact.edit else ''}{_flat(fact.by)}"


def toml(value: Value) -> str:
    """A value as TOML writes it."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(toml(inner) for inner in value) + "]"
    if isinstance(value, str):
        return json.dumps(_flat(value), ensure_ascii=False)  # a JSON string is a TOML string
    return json.dumps(value)


def _flat(text: str) -> str:
    """One line of plain text: a scheduler's answer may hold anything."""
    return "".join(c if c.isprintable() else " " for c in text)


def _order(table: str) -> tuple[int, str]:
    first = ("scheduler", "directives", "kinds", "launchers", "environments", "rendezvous", "storage", "detect")
    head = table.partition(".")[0]
    return (first.index(head) if head in first else len(first), table)
