"""Who runs where in a read script, as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from maple_parsl.terminal import clean

if TYPE_CHECKING:
    from maple_parsl.script.model import Script
    from maple_parsl.script.rankmap import LaunchRanks
    from maple_parsl.site import Site


def map_text(script: Script, site: Site | None) -> str:
    """A block for each launch; what cannot be told is ``?``."""
    from maple_parsl.script.rankmap import rank_map

    ranks = rank_map(script, site)
    lines: list[str] = []
    for launch in ranks.launches:
        lines += [*_launch(launch), ""]
    if not lines:
        lines = ["no launch was found in this script", ""]
    return "\n".join(lines)


def _launch(found: LaunchRanks) -> Iterator[str]:
    chain = " -> ".join(part.launcher or "program" for part in found.launch.chain)
    yield clean(f"line {found.launch.place.line}: {chain}")
    rows = {
        "nodes": f"{_number(found.nodes)} of {_number(found.job_nodes)} in the job",
        "processes": f"{_number(found.processes)} ({_number(found.per_node)} per node)",
        "world size": f"{_number(found.world_size)} as they are told",
        "rank from": found.framework or _value(found.rank),
        "local rank from": found.framework or _value(found.local_rank),
        "devices seen": _devices(found),
        "cores": _number(found.cores),
        "meet at": f"{_value(found.endpoint.host)}:{_value(found.endpoint.port)}",
        "backend": found.backend or "?",
    }
    for name, value in rows.items():
        yield clean(f"  {name:<16} {value}")
    for block in found.blocks:
        last = block.first_node + block.nodes - 1
        nodes = f"node {last}" if block.nodes == 1 else f"nodes {block.first_node}-{last}"
        end = block.first_rank + block.nodes * block.per_node - 1
        yield f"  {nodes}: {block.per_node} each, ranks {block.first_rank}-{end}"


def _devices(found: LaunchRanks) -> str:
    devices = found.devices
    text = _number(devices.count)
    if devices.indices and len(devices.indices) <= 16:
        text += f" ({', '.join(map(str, devices.indices))})"
    return f"{text}{', its own' if devices.per_process else ''}{f', by {devices.source}' if devices.source else ''}"


def _number(value: int | None) -> str:
    return "?" if value is None else str(value)


def _value(value: object) -> str:
    return "?" if value is None else str(value)[:80]
