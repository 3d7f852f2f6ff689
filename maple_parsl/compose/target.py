"""Choosing the queue and the node kind, and checking the request against their limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maple_parsl.compose.context import Context, Target
from maple_parsl.errors import UnknownNameError

if TYPE_CHECKING:
    from maple_parsl.site import NodeKind, Queue
    from maple_parsl.walltime import Walltime


def limit(queue: Queue, nodes: int) -> tuple[Walltime | None, str | None]:
    """The walltime limit of a queue for that many nodes, and the queue it is routed to."""
    for band in queue.bands:
        if band.min_nodes <= nodes <= band.max_nodes:
            return band.max_walltime, band.via
    return queue.max_walltime, None


def misfits(queue: Queue, nodes: int, walltime: Walltime | None, devices: int | None) -> list[str]:
    """Why a job does not fit a queue; empty where it does, as far as the facts go."""
    reasons = []
    if not queue.batch:
        reasons.append("takes no batch scripts (interactive only)")
    if not queue.open:
        reasons.append("is open on request only")
    low = queue.min_nodes or (min(b.min_nodes for b in queue.bands) if queue.bands else 1)
    high = queue.max_nodes or (max(b.max_nodes for b in queue.bands) if queue.bands else None)
    if nodes < low:
        reasons.append(f"starts at {low} nodes, {nodes} asked for")
    if high is not None and nodes > high:
        reasons.append(f"takes at most {high} node{'s' if high > 1 else ''}, {nodes} asked for")
    longest, via = limit(queue, nodes)
    if walltime and longest and walltime > longest:
        where = f" for {nodes} nodes (routed to {via})" if via else f" for {nodes} nodes" if queue.bands else ""
        reasons.append(f"allows at most {longest}{where}, {walltime} asked for")
    if devices is not None:
        if queue.max_gpus_per_node and devices > queue.max_gpus_per_node:
            reasons.append(f"gives at most {queue.max_gpus_per_node} GPUs per node, {devices} asked for")
        if queue.max_gpus and devices * nodes > queue.max_gpus:
            reasons.append(f"gives a job at most {queue.max_gpus} GPUs, {devices * nodes} asked for")
    return reasons


def choose(context: Context, nodes: int) -> Target | None:
    """The queue and node kind of the request; None with problems noted where they cannot be told."""
    request, site = context.request, context.site
    if request.node_kind is not None and request.node_kind not in site.kinds:
        context.problems.append(str(UnknownNameError("node kind", request.node_kind, site.kinds)) + f" at {site.name}")
        return None
    wanted = request.node_kind
    queues = site.queues.entry if site.queues else ()
    if not queues:
        if request.queue is not None:
            context.note("queue", "stated", "stated in the request; the site's queues are not known to Maple")
        return _kind_only(context, wanted)

    stated = request.queue or site.defaults.queue
    if stated is None:
        return _the_only_fitting(context, queues, nodes, wanted)
    queue = site.queue(stated)
    if queue is None:
        context.problems.append(
            f"{UnknownNameError('queue', stated, (q.name for q in queues))} (at {site.name};"
            " a queue of your own goes into a site file of yours)"
        )
        return None
    if wanted is not None and wanted not in queue.kinds:
        context.problems.append(f"queue {queue.name} has no {wanted} nodes; it has {', '.join(queue.kinds)}")
        return None
    if request.queue:
        context.note("queue", "stated", "stated in the request")
    else:
        context.note("queue", "configured", "your default queue for this site")
    name = wanted or queue.kinds[0]
    _note_kind(context, name, f"the kind of queue {queue.name}" if wanted is None else None)
    target = Target(name, site.kinds[name], queue)
    _check(context, target, nodes)
    return target


def _devices(context: Context, queue: Queue, wanted: str | None) -> int | None:
    """Devices per node for the queue's limits: the stated number, else the whole node of a whole-node queue."""
    if context.request.gpus_per_node is not None:
        return context.request.gpus_per_node
    kind = context.site.kinds[wanted or queue.kinds[0]]
    if queue.max_gpus_per_node or kind.composed or kind.select_unit == "gpu":
        return None  # a part of a node: its size is asked for next
    return kind.gpus


def _check(context: Context, target: Target, nodes: int) -> None:
    """Refuse what the queue does not take, offering those that do."""
    request, queue = context.request, target.queue
    assert queue is not None
    devices = _devices(context, queue, target.kind_name)
    reasons = misfits(queue, nodes, request.walltime, devices)
    if not reasons:
        return
    others = [
        other.name
        for other in (context.site.queues.entry if context.site.queues else ())
        if other is not queue
        and set(other.kinds) & set(queue.kinds)
        and not misfits(other, nodes, request.walltime, _devices(context, other, None))
    ]
    offer = f"queues that fit: {', '.join(others)}" if others else "no other queue of these nodes fits either"
    context.problems.append(f"queue {queue.name} of {context.site.name} {' and '.join(reasons)}; {offer}")


def _the_only_fitting(context: Context, queues: tuple[Queue, ...], nodes: int, wanted: str | None) -> Target | None:
    request, site = context.request, context.site
    fitting = [
        queue
        for queue in queues
        if (wanted is None or wanted in queue.kinds)
        and not misfits(queue, nodes, request.walltime, _devices(context, queue, wanted))
    ]
    if len(fitting) == 1:
        queue = fitting[0]
        name = wanted or queue.kinds[0]
        context.note("queue", "computed", f"the only queue of {site.name} that takes this job")
        _note_kind(context, name, f"the kind of queue {queue.name}" if wanted is None else None)
        return Target(name, site.kinds[name], queue)
    if fitting:
        context.problems.append(
            f"no queue stated, and several of {site.name} take this job: "
            + ", ".join(q.name for q in fitting)
            + "; name one"
        )
    else:
        why = "; ".join(
            f"{queue.name} {' and '.join(misfits(queue, nodes, request.walltime, _devices(context, queue, wanted)))}"
            for queue in queues
            if wanted is None or wanted in queue.kinds
        )
        context.problems.append(f"no queue of {site.name} takes this job: {why}")
    return None


def _kind_only(context: Context, wanted: str | None) -> Target | None:
    site = context.site
    if wanted is None and len(site.kinds) > 1:
        context.problems.append(f"{site.name} has several kinds of node: {', '.join(site.kinds)}; name one")
        return None
    name = wanted or next(iter(site.kinds))
    _note_kind(context, name, "the only kind of node" if wanted is None else None)
    return Target(name, site.kinds[name], None)


def _note_kind(context: Context, name: str, why: str | None) -> None:
    kind: NodeKind = context.site.kinds[name]
    if why is None:
        context.note("kind", "stated", "stated in the request")
    else:
        context.provenance["kind"] = context.fact(f"kinds.{name}", kind, why)
