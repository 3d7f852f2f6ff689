"""What a site fixes about a job's shape, as far as the request tells which of its nodes are meant."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from maple_parsl.extraction.vocabulary import Vocabulary

if TYPE_CHECKING:
    from maple_parsl.site import NodeKind, Queue, Site


@dataclass(frozen=True)
class Facts:
    """A node of the site that is meant.

    Attributes:
        devices: as a framework sees them; gpus: physical. Absent: unknown, or several kinds of node fit.
        gpu: its model, a name of the vocabulary. names: queues. title: how the site is called.
    """

    title: str
    devices: int | None = None
    gpus: int | None = None
    gpu: str | None = None
    queues: tuple[str, ...] = ()
    site: Site | None = None
    queue: Queue | None = None
    retired: bool = False


def facts_of(site: Site, queue: str | None, gpu: str | None, vocabulary: Vocabulary) -> Facts:
    """The facts of a site of the catalogue."""
    entries = site.queues.entry if site.queues else ()
    chosen = site.queue(queue) if queue else next((each for each in entries if each.default), None)
    kinds = [site.kinds[name] for name in chosen.kinds[:1]] if chosen and queue else list(site.kinds.values())
    if not queue and gpu:
        kinds = [kind for kind in kinds if gpu_of(kind, vocabulary) == gpu] or kinds
    if not queue and chosen is not None and len({kind.devices for kind in kinds}) > 1:
        kinds = [site.kinds[name] for name in chosen.kinds[:1]]
    counts = {(kind.devices, kind.gpus) for kind in kinds}
    one = kinds[0] if len(counts) == 1 else None
    cap = chosen.max_gpus_per_node if chosen and queue else None
    partly = cap is not None and one is not None and cap < one.devices
    unknown = one is None or one.composed or one.select_unit == "gpu" or site.scheduler.kind == "none" or partly
    models = {gpu_of(kind, vocabulary) for kind in kinds}
    return Facts(
        title=site.title,
        devices=None if unknown or one is None else one.devices,
        gpus=None if unknown or one is None else one.gpus,
        gpu=models.pop() if len(models) == 1 else None,
        queues=tuple(each.name for each in entries),
        site=site,
        queue=site.queue(queue) if queue else None,
        retired=site.status == "retired",
    )


def gpu_of(kind: NodeKind, vocabulary: Vocabulary) -> str | None:
    """The GPU of a kind of node, as the vocabulary names it."""
    low = kind.title.lower()
    found = [name for name in vocabulary.gpus if re.search(rf"\b{re.escape(name)}\b", low)]
    return max(found, key=len) if found else None


def place_facts(name: str, vocabulary: Vocabulary) -> Facts:
    """The facts of a place without a site file."""
    place = vocabulary.places[name]
    return Facts(place.title, place.devices, place.gpus, place.gpu, place.queues)
