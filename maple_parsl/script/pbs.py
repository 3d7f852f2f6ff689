"""PBS resource requests: ``select``, ``place`` and Torque's ``nodes``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from maple_parsl.script.model import Script


@dataclass(frozen=True, slots=True)
class Chunk:
    """``count`` units with these resources each; ``host`` or other words without ``=`` are in ``words``."""

    count: int | None
    resources: Mapping[str, str]
    words: tuple[str, ...] = ()

    def number(self, *names: str) -> int | None:
        """A resource as a whole number, by the first of the names that is there."""
        for name in names:
            text = self.resources.get(name, "")
            if text.isascii() and text.isdigit():
                return int(text)
        return None


@dataclass(frozen=True, slots=True)
class Request:
    """A whole request. ``torque``: written as ``nodes=…:ppn=…``."""

    chunks: tuple[Chunk, ...]
    torque: bool = False

    @property
    def count(self) -> int | None:
        """Units in all."""
        counts = [chunk.count for chunk in self.chunks]
        return sum(c for c in counts if c is not None) if counts and None not in counts else None


def parse(text: str, torque: bool = False) -> Request:
    """Read the text behind ``select=`` or ``nodes=``."""
    chunks = []
    for part in text.strip().split("+"):
        first, *rest = part.split(":")
        count: int | None = 1
        words: list[str] = []
        resources: dict[str, str] = {}
        if first.isascii() and first.isdigit() and len(first) < 10:
            count = int(first)
        elif "=" in first:
            rest.insert(0, first)
        elif torque:
            words.append(first)
        else:
            count = None
            words.append(first)
        for piece in rest:
            key, mark, value = piece.partition("=")
            if mark:
                resources[key.strip()] = value.strip()
            else:
                words.append(piece)
        chunks.append(Chunk(count, resources, tuple(words)))
    return Request(tuple(chunks), torque)


def request(script: Script) -> Request | None:
    """What a PBS script asks for; None where it says nothing."""
    chosen = script.directive("-l select")
    if chosen and chosen.value:
        return parse(chosen.value)
    nodes = script.directive("-l nodes")
    return parse(nodes.value, torque=True) if nodes and nodes.value else None
