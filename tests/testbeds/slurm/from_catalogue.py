"""A `SiteShape` from a site of Maple's catalogue.

What the catalogue does not know and a controller cannot do without (a count of nodes, cores, memory) is filled
with a round number; so consent shows agreement with what the catalogue states, and with Slurm's own grammar.
"""

from __future__ import annotations

import re

from maple_parsl.site import NodeKind, Queue, Site

from .shapes import Bin, NodeGroup, PartitionShape, QosShape, SiteShape

UNKNOWN_NODES, UNKNOWN_CORES, UNKNOWN_MEMORY_GIB, COMPOSED_GPUS = 64, 64, 256, 8


def shape_of(site: Site) -> SiteShape:
    """The shape of a Slurm site."""
    real = {name: kind for name, kind in site.kinds.items() if not _is_mixture(kind, site)}
    groups = tuple(_group(site, name, kind) for name, kind in real.items())
    queues = site.queues.entry if site.queues else ()
    as_qos = site.scheduler.queue_option == "qos"
    features = tuple(sorted({_features(kind)[0] for kind in site.kinds.values() if kind.constraint}))
    required = [name for name, needed in (("account", site.scheduler.account == "required"), ("time", True)) if needed]
    return SiteShape(
        cluster=re.sub(r"[^a-z0-9]", "", site.name),
        groups=groups,
        partitions=_one_partition(groups) if as_qos else _partitions(queues, real),
        qos=tuple(_qos(queue) for queue in queues if as_qos or queue.qos),
        required=tuple(required),
        account_pattern=site.scheduler.account_pattern,
        forbidden={
            option.removeprefix("--"): "not at this site"
            for option in site.directives.forbidden
            if option.startswith("--") and not (as_qos and option == "--partition")
        },
        feature_required=features or None,
        core_spec=site.name == "frontier",
    )


def _features(kind: NodeKind) -> list[str]:
    return kind.constraint.split("&") if kind.constraint else []


def _is_mixture(kind: NodeKind, site: Site) -> bool:
    """Whether other kinds are what this one is made of (a constraint that several kinds fulfil)."""
    own = set(_features(kind))
    return bool(own) and any(own < set(_features(other)) for other in site.kinds.values())


def _group(site: Site, name: str, kind: NodeKind) -> NodeGroup:
    sockets = kind.sockets or 1
    cores = kind.cores or UNKNOWN_CORES
    threads = kind.hw_threads or cores
    per_core = threads // cores if threads % cores == 0 else 2
    counted = site.directives.gpu_request != "none"
    gpus = COMPOSED_GPUS if kind.composed else kind.gpus
    return NodeGroup(
        name=name,
        prefix=re.sub(r"[^a-z0-9]", "", name.lower()) + "n",
        count=kind.nodes or UNKNOWN_NODES,
        sockets=sockets,
        cores_per_socket=threads // per_core // sockets,
        threads_per_core=per_core,
        memory_mb=int((kind.memory_gib or UNKNOWN_MEMORY_GIB) * 1000),
        gpu_type=kind.gres_type if counted else None,
        gpus=gpus if counted else 0,
        features=tuple(_features(kind)),
    )


def _minutes(queue: Queue) -> int | None:
    limits = [band.max_walltime for band in queue.bands] + ([queue.max_walltime] if queue.max_walltime else [])
    return max(limits).minutes if limits else None


def _partitions(queues: tuple[Queue, ...], real: dict[str, NodeKind]) -> tuple[PartitionShape, ...]:
    made: dict[str, PartitionShape] = {}
    for queue in queues:
        name = queue.partition or queue.name
        if name in made:  # a queue that is another one's partition with a QOS of its own
            continue
        made[name] = PartitionShape(
            name=name,
            groups=tuple(kind for kind in queue.kinds if kind in real),
            min_nodes=None if queue.qos else queue.min_nodes,
            max_nodes=None if queue.qos else queue.max_nodes,
            max_minutes=None if queue.qos else _minutes(queue),
            exclusive=queue.exclusive,
            default=queue.default,
            bins=tuple(Bin(b.min_nodes, b.max_nodes, b.max_walltime.minutes) for b in queue.bands),
        )
    return tuple(made.values())


def _one_partition(groups: tuple[NodeGroup, ...]) -> tuple[PartitionShape, ...]:
    return (PartitionShape(name="all", groups=tuple(group.name for group in groups), default=True),)


def _qos(queue: Queue) -> QosShape:
    return QosShape(
        name=queue.qos or queue.name,
        min_nodes=queue.min_nodes,
        max_nodes=queue.max_nodes,
        max_minutes=_minutes(queue),
        max_gpus=queue.max_gpus,
        default=queue.default,
    )
