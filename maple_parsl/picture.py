"""The rank map drawn: a table for the terminal, an SVG for a page. Large jobs show their first and last nodes."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from maple_parsl.plan import Plan
from maple_parsl.ranks import Place, RankMap

if TYPE_CHECKING:
    from rich.table import Table

SHOWN_NODES = 4


@dataclass(frozen=True)
class Gap:
    """Nodes left out of a picture: from ``first`` to ``last``, both included."""

    first: int
    last: int
    ranks: tuple[int, int]


def shown(ranks: RankMap, nodes: int = SHOWN_NODES) -> list[Place | Gap]:
    """The places worth drawing: all of a small job, else the first nodes, a gap, and the last node."""
    if ranks.nodes <= nodes:
        return list(ranks)
    head = [ranks[rank] for rank in range((nodes - 1) * ranks.per_node)]
    last = ranks.nodes - 1
    gap = Gap(nodes - 1, last - 1, ((nodes - 1) * ranks.per_node, last * ranks.per_node - 1))
    return [*head, gap, *(ranks[rank] for rank in range(last * ranks.per_node, ranks.world_size))]


def _processes(ranks: RankMap) -> str:
    return f"{ranks.world_size} process{'es' if ranks.world_size > 1 else ''}"


def _cores(plan: Plan) -> str:
    """What the map's cores are: those a process is bound to, or those closest to its device."""
    return "cores" if plan.launch.mode == "device" else "closest cores"


def table(plan: Plan, nodes: int | None = None) -> Table:
    """Who runs where, as a rich table of at most so many nodes."""
    from rich.table import Table

    ranks = plan.ranks
    made = Table(title=f"{plan.title}: {_processes(ranks)}, {ranks.backend} on {ranks.device_type}")
    for heading in ("node", "rank", "local rank", "device", _cores(plan), "NUMA"):
        made.add_column(heading, justify="left" if heading.endswith("cores") else "right")
    for place in shown(ranks, nodes or SHOWN_NODES):
        if isinstance(place, Gap):
            made.add_row(f"{place.first}-{place.last}", f"{place.ranks[0]}-{place.ranks[1]}", "…", "…", "…", "…")
            continue
        made.add_row(
            str(place.node),
            str(place.rank),
            str(place.local_rank),
            f"{ranks.device_type}:{place.device}",
            place.cores or ("not pinned" if plan.launch.mode == "device" else "unknown"),
            "" if place.numa is None else str(place.numa),
            end_section=place.local_rank == ranks.per_node - 1,
        )
    return made


_CELL, _ROW, _LEFT, _TOP = 116, 62, 92, 64


def svg(plan: Plan) -> str:
    """The same as a picture: one row per node, one box per process."""
    ranks = plan.ranks
    rows: list[list[Place] | Gap] = []
    for place in shown(ranks):
        if isinstance(place, Gap):
            rows.append(place)
        elif place.local_rank == 0:
            rows.append([place])
        else:
            last = rows[-1]
            assert isinstance(last, list)
            last.append(place)
    width = max(_LEFT + ranks.per_node * _CELL + 16, 560)
    height = _TOP + len(rows) * _ROW + 24
    title = escape(plan.title)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        f' role="img" aria-label="{title}" font-family="system-ui, sans-serif" font-size="12">',
        f"<title>{title}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="16" y="26" font-size="15" font-weight="600">{title}</text>',
        f'<text x="16" y="46" fill="#555">{_processes(ranks)} · {escape(ranks.backend)} on'
        f" {escape(ranks.device_type)} · ranks from {escape(ranks.rank_source)}</text>",
    ]
    for index, row in enumerate(rows):
        top = _TOP + index * _ROW
        if isinstance(row, Gap):
            text = f"nodes {row.first} to {row.last}: ranks {row.ranks[0]} to {row.ranks[1]}, the same way"
            parts.append(f'<text x="{_LEFT}" y="{top + 30}" fill="#555">⋮ {text}</text>')
            continue
        parts.append(f'<text x="16" y="{top + 30}" font-weight="600">node {row[0].node}</text>')
        parts += [_box(place, ranks.device_type, _cores(plan), _LEFT + place.local_rank * _CELL, top) for place in row]
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _box(place: Place, device_type: str, what: str, left: int, top: int) -> str:
    cores = f"{what} {place.cores}" if place.cores else "cores not pinned"
    numa = "" if place.numa is None else f" · NUMA {place.numa}"
    shown_cores = escape(cores if len(cores) <= 20 else cores[:19] + "…")
    return (
        f"<g><title>rank {place.rank}: node {place.node}, local rank {place.local_rank},"
        f" {device_type}:{place.device}, {escape(cores)}{numa}</title>"
        f'<rect x="{left}" y="{top}" width="{_CELL - 8}" height="{_ROW - 10}" rx="5" fill="#e8f0fb" stroke="#4a78b5"/>'
        f'<text x="{left + 8}" y="{top + 17}" font-weight="600">rank {place.rank}</text>'
        f'<text x="{left + 8}" y="{top + 32}">{device_type}:{place.device}{numa}</text>'
        f'<text x="{left + 8}" y="{top + 46}" fill="#555" font-size="10">{shown_cores}</text></g>'
    )
