"""What of a request changes for a fault: new values of its fields, or why none can be said."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maple_parsl.compose.environment import LAUNCH_SETS
from maple_parsl.compose.target import limit, misfits
from maple_parsl.port.names import why_of_site
from maple_parsl.walltime import Walltime

if TYPE_CHECKING:
    from maple_parsl.request import Request
    from maple_parsl.site import NodeKind, Queue, Site


@dataclass(frozen=True)
class Fault:
    """Something wrong: class of a check or of a log, its words, the text it stands in, its place in ``where``."""

    fault_class: str
    words: str
    text: str = ""
    where: str = "script"
    advice: str = ""


@dataclass(frozen=True)
class Remedy:
    """New values of request fields and why; ``fields`` empty: nothing of a request mends this, and ``why`` says so."""

    fields: Mapping[str, Any]
    why: str


Find = Callable[["Request", "Site", "Fault"], Remedy]


def remedy(request: Request, site: Site, fault: Fault) -> Remedy:
    """The change for one fault."""
    if fault.where == "program":
        return Remedy({}, f"the program is at fault, not the launch: {fault.words}{_then(fault.advice)}")
    for find in (_FOR.get(fault.fault_class), _stated_text):
        made = find(request, site, fault) if find is not None else None
        if made is not None and (made.fields or find is _FOR.get(fault.fault_class)):
            return made
    return Remedy({}, f"{fault.words}{_then(fault.advice)}")


def unfit(request: Request, site: Site) -> Remedy | None:
    """For a request that makes no plan: the first thing that does not fit the site and can be put right."""
    for find in (_launch_variables, _too_many_devices, _too_many_cores, _short_walltime, _queue_limits):
        made = find(request, site)
        if made is not None and made.fields:
            return made
    return None


def kind_of(request: Request, site: Site) -> NodeKind | None:
    """The kind of node the request gets."""
    queue = site.queue(request.queue or site.defaults.queue or "")
    name = request.node_kind or (queue.kinds[0] if queue else None)
    if name is None and len(site.kinds) == 1:
        name = next(iter(site.kinds))
    return site.kinds.get(name) if name else None


def _then(advice: str) -> str:
    return f"; {advice}" if advice else ""


def _queue(request: Request, site: Site) -> Queue | None:
    return site.queue(request.queue or site.defaults.queue or "")


def _fitting(request: Request, site: Site, walltime: Walltime | None) -> list[str]:
    """Other queues of the same nodes that take the job."""
    now = _queue(request, site)
    return [
        other.name
        for other in (site.queues.entry if site.queues else ())
        if now is not None
        and other is not now
        and set(other.kinds) & set(now.kinds)
        and not misfits(other, request.nodes or 1, walltime, request.gpus_per_node)
    ]


def _more_time(request: Request, site: Site, fault: Fault) -> Remedy:
    now = request.walltime
    if now is None:
        return Remedy({}, "the walltime stands in a directive of your own; raise it there")
    queue = _queue(request, site)
    longest = limit(queue, request.nodes or 1)[0] if queue else None
    wanted = Walltime(2 * now)
    said = "it ran into its walltime (where no step of training was printed it hung, and more time does not help)"
    if longest is None or wanted <= longest:
        return Remedy({"walltime": wanted}, f"{said}; twice as much")
    if longest > now:
        return Remedy({"walltime": longest}, f"{said}; {longest} is the most that {queue.name if queue else ''} allows")
    others = _fitting(request, site, wanted)
    if len(others) == 1:
        return Remedy(
            {"walltime": wanted, "queue": others[0]}, f"{said}; {others[0]} is the only queue that allows more"
        )
    offer = f"name one of {', '.join(others)}" if others else "no queue of these nodes allows more"
    return Remedy({}, f"{now} is the most its queue allows; write checkpoints and resume, or: {offer}")


def _more_memory(request: Request, site: Site, fault: Fault) -> Remedy:
    kind = kind_of(request, site)
    most = math.floor(kind.memory_gib) if kind is not None and kind.memory_gib else None
    now = _gib(request.memory)
    if now is not None:
        wanted = min(2 * now, most) if most else 2 * now
        if wanted > now:
            return Remedy({"memory": f"{math.floor(wanted)}G"}, "a process was killed for want of host memory")
        return Remedy({}, f"{request.memory} is all the memory of a node; use less per process, or more nodes")
    part = request.gpus_per_node
    if most is None or kind is None or part is None or part >= kind.devices:
        return Remedy({}, "host memory ran out, and how much the job had is not stated; state --memory, or use less")
    share = most * part // kind.devices
    return Remedy({"memory": f"{share}G"}, f"host memory ran out; {share} GiB is the share of {part} devices of a node")


def _gib(text: str | None) -> float | None:
    if text is None:
        return None
    return int(text[:-1]) * {"K": 1 / 1048576, "M": 1 / 1024, "G": 1, "T": 1024}[text[-1]]


def _requeue(request: Request, site: Site, fault: Fault) -> Remedy:
    if site.scheduler.kind == "slurm" and not request.requeue:
        return Remedy({"requeue": True}, "it was preempted; it is queued again and resumes from its checkpoint")
    return Remedy({}, f"{fault.words}; nothing of the request is wrong: run it again")


def _again(request: Request, site: Site, fault: Fault) -> Remedy:
    return Remedy({}, f"{fault.words}; nothing of the request is wrong: run it again")


def _site_variables(request: Request, site: Site, fault: Fault) -> Remedy:
    """The user's own network, device and launch variables give way to the site's."""
    wrong = sorted(name for name in request.env if why_of_site(name, site))
    if not wrong:
        return Remedy({}, f"{fault.words}{_then(fault.advice)}")
    return Remedy({"env": _without(request.env, wrong)}, f"{', '.join(wrong)} is the site's to set: {fault.words}")


def _without(env: Mapping[str, str], names: list[str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name not in names}


def _stated_text(request: Request, site: Site, fault: Fault) -> Remedy | None:
    """A raw directive or launcher option that the finding's own line holds."""
    for field in ("directives", "launcher_args"):
        rows = getattr(request, field)
        wrong = [row for row in rows if row in fault.text]
        if wrong:
            return Remedy({field: tuple(r for r in rows if r not in wrong)}, f"{', '.join(wrong)}: {fault.words}")
    return None


def _queue_fault(request: Request, site: Site, fault: Fault) -> Remedy:
    made = _queue_limits(request, site)
    return made or Remedy({}, f"{fault.words}{_then(fault.advice)}")


def _queue_limits(request: Request, site: Site) -> Remedy | None:
    queue = _queue(request, site)
    if queue is None:
        return None
    reasons = misfits(queue, request.nodes or 1, request.walltime, request.gpus_per_node)
    if not reasons:
        return None
    why = f"queue {queue.name} {' and '.join(reasons)}"
    others = _fitting(request, site, request.walltime)
    if len(others) == 1:
        return Remedy({"queue": others[0]}, f"{why}; {others[0]} is the only other queue that takes the job")
    if others:
        return Remedy({}, f"{why}; name one of {', '.join(others)}")
    longest = limit(queue, request.nodes or 1)[0]
    if longest and not misfits(queue, request.nodes or 1, longest, request.gpus_per_node):
        return Remedy({"walltime": longest}, f"{why}, and no other queue takes the job")
    return Remedy({}, f"{why}; no queue of these nodes takes the job")


def _launch_variables(request: Request, site: Site) -> Remedy | None:
    wrong = sorted(name for name in request.env if name in LAUNCH_SETS)
    fields = {"env": _without(request.env, wrong)} if wrong else {}
    return Remedy(fields, f"the launch sets {', '.join(wrong)} for every process")


def _too_many_devices(request: Request, site: Site) -> Remedy | None:
    kind, asked = kind_of(request, site), request.gpus_per_node
    if kind is None or asked is None or kind.composed or asked <= kind.devices:
        return None
    total = asked * (request.nodes or 1)
    if total % kind.devices:
        return Remedy({}, f"a node has {kind.devices} devices, which do not divide the {total} asked for")
    why = f"a node has {kind.devices} devices; the {total} in all stay"
    return Remedy({"gpus_per_node": kind.devices, "nodes": total // kind.devices}, why)


def _too_many_cores(request: Request, site: Site) -> Remedy | None:
    kind = kind_of(request, site)
    most = (kind.hw_threads or kind.cores) if kind is not None else None
    if kind is None or most is None or request.cpus is None:
        return None
    if request.cpus * (request.gpus_per_node or kind.devices) <= most:
        return None
    return Remedy({"cpus": None}, f"a node has {most}; each process gets its share")


def _short_walltime(request: Request, site: Site) -> Remedy | None:
    least = site.scheduler.min_walltime
    if request.walltime is None or not least or request.walltime >= least:
        return None
    return Remedy({"walltime": least}, f"{site.title} takes no job shorter than {least}")


_FOR: dict[str, Find] = {
    "walltime": _more_time,
    "out_of_memory": _more_memory,
    "killed": _more_memory,
    "MEMORY": _more_memory,
    "preemption": _requeue,
    "node_failure": _again,
    "cancelled": _again,
    "port_conflict": _again,
    "network_interface": _site_variables,
    "NETWORK_IFACE": _site_variables,
    "rendezvous_address": _site_variables,
    "rendezvous_config": _site_variables,
    "RDZV_ENDPOINT": _site_variables,
    "device": _site_variables,
    "GPU_VISIBILITY": _site_variables,
    "QUEUE_LIMIT": _queue_fault,
    "submission": _queue_fault,
}
