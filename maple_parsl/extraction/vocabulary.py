"""The words of the trade (``agents/extraction/vocabulary.toml``, ``places.toml``) and the catalogue's names."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from maple_parsl.data import data_folder

# One letter per part of speech: a request becomes a string of them, and the grammar is patterns over that string.
PARTS = {
    "node": "n",
    "gpu": "g",
    "tile": "t",
    "process": "P",
    "per": "p",
    "each": "e",
    "total": "T",
    "whole": "W",
    "times": "x",
    "per_node": "/",
    "and": "y",
    "fraction_half": "h",
    "fraction_quarter": "h",
    "negation": "!",
    "from": "f",
    "correction": "~",
    "past": "<",
    "article": "i",
    "filler": "i",
    "preposition": "o",
    "or": "|",
    "least": "l",
    "vague": "v",
    "vague_time": "V",
    "longest_time": "X",
}
LABELS = {
    "account": "a",
    "queue": "q",
    "site": "s",
    "walltime": "w",
    "script": "k",
    "args": "r",
    "model": "m",
    "paradigm": "d",
    "framework": "b",
    "precision": "c",
    "name": "j",
    "port": "u",
    "conda": "E",
    "venv": "E",
    "container": "E",
}
Entry = tuple[str, Any]


@dataclass(frozen=True)
class Place:
    """A cluster that people name and that has no site file."""

    name: str
    title: str
    aliases: tuple[str, ...] = ()
    gpu: str | None = None
    devices: int | None = None
    gpus: int | None = None
    queues: tuple[str, ...] = ()
    source: str | None = None
    checked_on: object = None


@dataclass(frozen=True)
class Vocabulary:
    """Phrases by their words; ``entries`` maps a phrase (lower case, blanks for hyphens) to its part and meaning."""

    entries: Mapping[str, Entry]
    longest: int
    gpus: Mapping[str, tuple[str, ...]]
    families: tuple[str, ...]
    variants: frozenset[str]
    not_typos: frozenset[str]
    common: frozenset[str]
    datasets: frozenset[str]
    places: Mapping[str, Place]
    fuzzy: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    technical: frozenset[str] = frozenset()  # words of the names of paradigms that have several


def plain(phrase: str) -> str:
    """A phrase as it is compared: lower case, hyphens and underscores as blanks."""
    return " ".join(re.split(r"[\s_-]+", phrase.lower())).strip()


@cache
def _file(name: str) -> dict[str, Any]:
    return tomllib.loads((data_folder("agents") / "extraction" / name).read_text(encoding="utf-8"))


@cache
def vocabulary(sites: tuple[tuple[str, tuple[str, ...]], ...]) -> Vocabulary:
    """The vocabulary for these sites: ``(name, aliases)`` of each."""
    raw = _file("vocabulary.toml")
    entries: dict[str, Entry] = {}

    def add(letter: str, value: Any, phrases: Iterable[str]) -> None:
        for phrase in phrases:
            entries.setdefault(plain(phrase), (letter, value))

    places: dict[str, Place] = {}
    for item in _file("places.toml")["place"]:
        facts: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in item.items()}
        places[item["name"]] = Place(**facts)
    for name, aliases in sites:
        add("S", name, (name, *aliases))
    for place in places.values():
        add("S", place.name, (place.name, *place.aliases))
    for name, phrases in raw["launchers"].items():
        add("L", name, phrases)
    for letter, section in (("A", "paradigms"), ("F", "frameworks"), ("B", "backends"), ("R", "precisions")):
        for name, phrases in raw[section].items():
            add(letter, name, phrases)
    per_node = [f"{unit} per node" for unit in ("gpus", "gpu", "devices", "accelerators", "cards", "g p us")]
    add(
        "H",
        "g",
        [
            *per_node,
            "ngpus per node",
            "num gpus per node",
            "gpus on each node",
            "gpus in each node",
            "gpus a node",
            "gpus on every node",
            "gpus each node",
            "gpus/node",
            "gpu/node",
            "gpus per host",
            "gpu per nodes",
        ],
    )
    add("H", "t", ["tiles per node", "gcds per node", "stacks per node", "tiles/node", "gcds/node"])
    add(
        "H",
        "P",
        [
            f"{unit} {how} node"
            for unit in (
                "processes",
                "process",
                "procs",
                "ranks",
                "tasks",
                "workers",
                "ntasks",
                "nproc",
                "nprocs",
                "nprocesses",
                "mpi ranks",
            )
            for how in ("per", "on each", "a", "on every")
        ],
    )
    add(
        "O",
        0,
        [
            "cpu only",
            "cpus only",
            "only cpu",
            "only cpus",
            "cpu run",
            "on cpu",
            "on cpus",
            "only on cpus",
            "no gpu",
            "no gpus",
            "without gpus",
            "without gpu",
            "without any gpus",
            "gpu free",
            "cpu based",
            "cpu nodes only",
            "on the cpu",
        ],
    )
    for phrase, seconds in raw["units"].items():
        add("U", seconds, [phrase])
    for family in raw["models"]["families"]:
        if " " in family:
            add("M", None, [family])
    for gpu in raw["gpus"]:
        add("G", gpu, [gpu, f"{gpu}s", f"{gpu} gpus", f"{gpu} gpu", f"nvidia {gpu}", f"amd {gpu}", f"{gpu}'s"])
    for phrase, number in raw["numbers"].items():
        add("#", number, [phrase])
    for section, letters in (("parts", PARTS), ("labels", LABELS)):
        for name, phrases in raw[section].items():
            add(letters[name], name, phrases)
    guards = raw["guards"]
    return Vocabulary(
        entries=entries,
        longest=max(len(phrase.split()) for phrase in entries),
        gpus={name: tuple(kinds) for name, kinds in raw["gpus"].items()},
        families=tuple(sorted((plain(each) for each in raw["models"]["families"]), key=len, reverse=True)),
        variants=frozenset(raw["models"]["variants"]),
        not_typos=frozenset(guards["not_typos"]) | frozenset(guards["words"]),
        common=frozenset(guards["words"]),
        datasets=frozenset(guards["datasets"]),
        places=places,
        fuzzy=_by_first_letter(entries),
        technical=frozenset(
            word
            for phrase, (letter, _) in entries.items()
            if letter == "A" and " " in phrase
            for word in phrase.split()
            if len(word) > 3
        ),
    )


def _by_first_letter(entries: Mapping[str, Entry]) -> dict[str, tuple[str, ...]]:
    """Words that a misspelling may be meant as: single words of some length, by their first letter."""
    made: dict[str, list[str]] = {}
    for phrase, (letter, value) in entries.items():
        least = 4 if letter in "nU" or phrase == "fsdp" else 5
        if letter in "SAFnUgGaqT" and " " not in phrase and len(phrase) >= least and value != "local":
            made.setdefault(phrase[0], []).append(phrase)
    return {first: tuple(words) for first, words in made.items()}
