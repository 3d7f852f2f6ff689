"""Nodes, GPUs and time outside a queue's limits."""

from __future__ import annotations

from collections.abc import Iterator

from maple_parsl.compose.target import misfits
from maple_parsl.finding import Edit
from maple_parsl.rules import parts
from maple_parsl.rules.asking import asked, cite, effective, gpus_of, kinds, nodes, per_node_gpus, submitted, walltime
from maple_parsl.rules.base import Family, Found, Subject
from maple_parsl.script import pbs
from maple_parsl.script.model import Directive
from maple_parsl.site import Queue
from maple_parsl.walltime import Walltime


def _ours(subject: Subject) -> bool:
    return subject.site is not None and submitted(subject) and subject.script.scheduler == subject.site.scheduler.kind


def _queue(subject: Subject) -> Queue | None:
    """The queue named, else the site's default where none is."""
    site = subject.site
    if site is None or site.queues is None:
        return None
    if subject.queue is not None:
        return subject.queue
    if asked(subject, "--partition", "--qos", "queue", "--reservation") is not None:
        return None
    return next((q for q in site.queues.entry if q.default), None)


def _size(subject: Subject, queue: Queue) -> tuple[int | None, int | None]:
    """Nodes, and devices per node; for queues that count GPUs all of them on one node."""
    site = subject.site
    assert site is not None
    kind = site.kinds[queue.kinds[0]]
    if kind.select_unit == "gpu" and subject.script.scheduler == "pbs":
        request = pbs.request(subject.script)
        return (1, request.count) if request and request.count else (None, None)
    given = per_node_gpus(subject)
    if given is not None:
        return nodes(subject), given[0]
    total, number = gpus_of(subject.script.directive("--gpus")), nodes(subject)
    if total and number and total % number == 0:
        return number, total // number
    request = pbs.request(subject.script) if subject.script.scheduler == "pbs" else None
    if request and len(request.chunks) == 1:
        return number, request.chunks[0].number("ngpus")
    return number, None


def _limits(subject: Subject) -> Iterator[Found]:
    site, queue = subject.site, _queue(subject)
    if site is None or queue is None or not _ours(subject):
        return
    number, devices = _size(subject, queue)
    time = walltime(subject)
    reasons = misfits(queue, number, time, devices) if number else _without_nodes(queue, time)
    others = [
        q.name
        for q in (site.queues.entry if site.queues else ())
        if number and q is not queue and set(q.kinds) & set(queue.kinds) and not misfits(q, number, time, devices)
    ]
    offer = f"Queues of these nodes that take it: {', '.join(others)}." if others else None
    for reason in reasons:
        if "request only" in reason:
            directive = asked(subject, "walltime")
        elif "node" in reason and "allows" not in reason and "GPU" not in reason:
            directive = asked(subject, "--nodes", "-l select", "--ntasks")
        else:
            directive = (
                asked(subject, "walltime")
                if "allows" in reason
                else asked(subject, "--gpus-per-node", "--gres", "--gpus")
            )
        where = directive or asked(subject, "--partition", "--qos", "queue") or effective(subject)[0]
        yield Found(
            f"{queue.name} of {site.title} {reason}",
            where.value_place or where.place,
            evidence=cite(site.queues) if site.queues else None,
            fix=offer,
            severity="warning" if "request only" in reason else None,
            edits=_longest(subject, queue, directive) if directive is not None and "allows at most" in reason else (),
        )


def _longest(subject: Subject, queue: Queue, directive: Directive) -> tuple[Edit, ...]:
    """The time becomes the longest that the queue gives to every job."""
    bands = [band.max_walltime for band in queue.bands if band.max_walltime is not None]
    longest = min(bands) if bands else queue.max_walltime
    text = directive.value or ""
    if longest is None or directive.name not in ("--time", "-l walltime", "walltime") or not text:
        return ()
    return parts.replace_text(subject, directive.place, text, str(longest))


def _without_nodes(queue: Queue, time: Walltime | None) -> list[str]:
    """Only the time, against the longest the queue has."""
    longest = max((b.max_walltime for b in queue.bands), default=queue.max_walltime)
    if time is not None and longest is not None and time > longest:
        return [f"allows at most {longest}, {time} asked for"]
    return []


def _shortest(subject: Subject) -> Iterator[Found]:
    site, time = subject.site, walltime(subject)
    if site is None or not _ours(subject) or time is None or site.scheduler.min_walltime is None:
        return
    if time < site.scheduler.min_walltime:
        directive = asked(subject, "walltime")
        yield Found(
            f"{time} is less than the {site.scheduler.min_walltime} that {site.title} takes at least",
            directive.place if directive else None,
            evidence=cite(site.scheduler),
        )


def _nodes_of_kind(subject: Subject) -> Iterator[Found]:
    """More nodes than there are."""
    found, number = kinds(subject), nodes(subject)
    if not _ours(subject) or not found or not number or any(k.nodes is None or k.select_unit == "gpu" for k in found):
        return
    most = max(k.nodes or 0 for k in found) if len(found) == 1 else sum(k.nodes or 0 for k in found)
    queue = _queue(subject)
    if number > most and not (queue and queue.max_nodes and number > queue.max_nodes):
        where = asked(subject, "--nodes", "-l select")
        yield Found(
            f"{number} nodes; there are {most} of this kind", where.place if where else None, evidence=cite(found[0])
        )


_ALCF = "#!/bin/bash -l\n#PBS -A demo\n#PBS -l select=4:system=polaris\n#PBS -l filesystems=home:eagle\n"
_END = "mpiexec -n 16 --ppn 4 python t.py\n"
_NERSC = "#!/bin/bash\n#SBATCH --account=m0000\n#SBATCH --constraint=gpu\n#SBATCH --nodes=2\n#SBATCH --time=00:10:00\n"
_NERSC += "#SBATCH --qos=regular\n#SBATCH --gpus-per-node=4\nsrun python t.py\n"
_GOOD = _ALCF + "#PBS -l walltime=00:30:00\n#PBS -q debug-scaling\n" + _END


_FAMILY = Family("QUEUE_LIMIT", source="the site's documentation", site="polaris")


RULES = (
    _FAMILY.rule(
        "queue-limit",
        "error",
        "nodes, GPUs or time outside the queue's limits",
        "The job is refused, or accepted by a routing queue and never started because no queue behind it takes it.",
        "Change the size or the queue.",
        _ALCF + "#PBS -l walltime=00:30:00\n#PBS -q prod\n" + _END,
        _GOOD,
        _limits,
    ),
    _FAMILY.rule(
        "walltime-too-short",
        "error",
        "a time below the shortest that is taken",
        "The site refuses jobs that ask for less.",
        "Ask for at least the shortest time.",
        _ALCF + "#PBS -l walltime=00:01:00\n#PBS -q debug-scaling\n" + _END,
        _GOOD,
        _shortest,
    ),
    _FAMILY.rule(
        "nodes-not-there",
        "error",
        "more nodes than there are",
        "No queue can give them.",
        "Ask for fewer nodes.",
        _NERSC.replace("=2", "=5000"),
        _NERSC,
        _nodes_of_kind,
        site="perlmutter",
    ),
)
