"""Which physical cores a launcher's binding option gives to a local rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maple_parsl.judge.inside.options import Options

if TYPE_CHECKING:
    from maple_parsl.judge.inside.supervisor import Cluster


def numbers(text: str, cores: int) -> list[int]:
    """The physical cores in ``24-31,56-63``: hardware threads count as their core."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if first.isdecimal() and (not dash or last.isdecimal()):
            found |= {number % cores for number in range(int(first), int(last if dash else first) + 1)}
    return sorted(found)


def bound(cluster: Cluster, given: Options, dialect: str, local: int, count: int) -> list[int] | None:
    """Cores of one rank; None where it may use all of them."""
    cores: int = cluster.world["cores"]
    stated = given.get("cpu-bind") or given.get("bind") or ""
    kind = stated.removeprefix("verbose,").removeprefix("v,")
    if dialect == "pals":
        depth = given.number("depth") or 1
        if kind.startswith("list:"):
            lists = kind.removeprefix("list:").split(":")
            return numbers(lists[local % len(lists)], cores)
        if kind in ("depth", "core", "thread") or (not kind and given.has("depth")):
            return [number % cores for number in range(local * depth, (local + 1) * depth)]
        return None
    if dialect == "openmpi":
        if kind == "none":
            return None
        if kind == "core" or (not kind and count <= 2):
            return [local]  # Open MPI binds up to two processes to one core each
        return None
    return None
