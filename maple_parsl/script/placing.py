"""How many processes a scheduler's or MPI's launcher starts, and on which nodes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from maple_parsl.script.launches import STEPS
from maple_parsl.script.model import Launch
from maple_parsl.script.variables import JobShape, expand_nodes, gres_gpus, typed_count

if TYPE_CHECKING:
    from maple_parsl.site import Site


@dataclass(frozen=True, slots=True)
class Started:
    """What the outer launcher starts.

    Attributes:
        nodes, per_node, total: processes; per_node is None where nodes differ. launched: a launcher is there.
        cores, gpus_per_task, gpus: of one process; ``gpus``: visible to each process of a node.
        bound_gpu: one device each, by binding. fills: full nodes first, the rest on the last.
    """

    nodes: int | None
    per_node: int | None
    total: int | None
    launched: bool
    cores: int | None = None
    gpus_per_task: int | None = None
    gpus: int | None = None
    bound_gpu: bool = False
    fills: bool = False


def started(launch: Launch, shape: JobShape, site: Site | None) -> Started:
    """By the outer launcher's own rules."""
    name = launch.launcher
    if name == "srun":
        return _srun(launch, shape)
    if name in ("mpiexec", "mpirun"):
        return _mpi(launch, shape, site)
    if name == "ibrun":
        return _ibrun(launch, shape)
    if name == "jsrun":
        return _jsrun(launch, shape)
    if name == "aprun":
        return _plain(launch, shape)
    if name in ("ssh", "pdsh", "pbsdsh"):
        return _remote(launch, shape)
    return Started(1, 1, 1, name in STEPS)


def _number(launch: Launch, name: str) -> int | None:
    value = launch.value(name)
    return value.number if value is not None else None


def _given(launch: Launch, name: str) -> bool:
    return launch.option(name) is not None


def _looped(launch: Launch, nodes: int | None, per_node: int | None, shape: JobShape) -> Started:
    """A step started once for each host, in a loop."""
    total = shape.nodes * per_node if shape.nodes and per_node else None
    return Started(shape.nodes, per_node, total, True) if nodes == 1 else Started(None, None, None, True)


def _srun(launch: Launch, shape: JobShape) -> Started:
    nodes: int | None = shape.nodes
    stated_nodes = launch.value("nodes")
    if stated_nodes is not None:
        low, high = expand_nodes(stated_nodes.text or (str(stated_nodes.number) if stated_nodes.number else None))
        nodes = low if low == high else None
    per_node = _number(launch, "ntasks_per_node")
    tasks = _number(launch, "ntasks")
    unclear = (_given(launch, "ntasks") and tasks is None) or (_given(launch, "ntasks_per_node") and per_node is None)
    inherited = not _given(launch, "ntasks") and not _given(launch, "ntasks_per_node")
    if inherited:
        per_node = shape.count("--ntasks-per-node")
        stated = shape.count("--ntasks")
        if (stated is not None and not _given(launch, "nodes")) or (stated is not None and per_node is None):
            tasks = stated
        per_task_gpus = shape.count("--ntasks-per-gpu")
        if per_task_gpus is not None:
            unclear = True
    elif tasks is not None and per_node is None and not _given(launch, "ntasks_per_node"):
        held = shape.count("--ntasks-per-node")
        per_node = held if nodes is None or (held is not None and held * nodes == tasks) else None
    if tasks is None and not unclear and nodes is not None:
        tasks = nodes * (per_node or 1)
    if nodes is None and tasks is not None and per_node:
        nodes = -(-tasks // per_node)
    if nodes is not None and tasks is not None and tasks < nodes:
        nodes = tasks
    even = tasks // nodes if tasks is not None and nodes and tasks % nodes == 0 else None
    if nodes == 1 and launch.command.loop and _given(launch, "nodelist"):
        return _looped(launch, nodes, even, shape)
    bind = launch.value("gpu_bind")
    bind_text = (bind.text or "") if bind is not None else shape.text("--gpu-bind") or ""
    bound = bind_text.startswith(("single:1", "map_gpu", "mask_gpu", "closest", "per_task:1"))
    gpus_per_task = _typed(launch, "gpus_per_task")
    if gpus_per_task is None:
        gpus_per_task = typed_count(shape.text("--gpus-per-task"))
    if bind_text.startswith("none"):
        gpus_per_task = None
    gpus = _typed(launch, "gpus_per_node")
    gres = launch.value("gres")
    if gpus is None and gres is not None:
        gpus = gres_gpus(gres.text)
    cores = _number(launch, "cpus_per_task")
    if cores is None and not _given(launch, "cpus_per_task"):
        exported = launch.variable("SRUN_CPUS_PER_TASK")
        cores = exported.number if exported is not None else None
    return Started(nodes, even, None if unclear else tasks, True, cores, gpus_per_task, gpus, bound)


def _typed(launch: Launch, name: str) -> int | None:
    value = launch.value(name)
    return typed_count(value.text) if value is not None else None


def _mpi(launch: Launch, shape: JobShape, site: Site | None) -> Started:
    total = _number(launch, "ntasks")
    per_node = _number(launch, "ntasks_per_node")
    dialect = launch.dialect
    if dialect == "unknown" and site is not None:
        known = {k.dialect for k in site.launchers.values() if k.command == launch.launcher}
        dialect = known.pop() if len(known) == 1 else dialect
    mapped = launch.value("map_by")
    match = re.match(r"ppr:(\d+):node", (mapped.text or "") if mapped is not None else "")
    if match:
        per_node = int(match[1])
    unclear = _given(launch, "ntasks") and total is None
    if per_node is None and not _given(launch, "ntasks_per_node") and mapped is None:
        per_node = _slots(total, shape, dialect)
    nodes = shape.nodes
    if total is None and not unclear and per_node and nodes:
        total = nodes * per_node
    if total is not None and per_node:
        nodes = -(-total // per_node)
    elif total is not None and shape.nodes == 1:
        nodes, per_node = 1, total
    elif per_node is None:
        nodes = None
    cores = _number(launch, "cpus_per_task")
    gpu_bind = launch.value("gpu_bind")
    bound = gpu_bind is not None and (gpu_bind.text or "").startswith("list")
    return Started(nodes, per_node, total, True, cores, bound_gpu=bound, fills=True)


def _slots(total: int | None, shape: JobShape, dialect: str) -> int | None:
    """Processes per node where the command names none: the slots the scheduler gives."""
    if total is not None and total == 1:
        return 1
    if dialect == "pals" and shape.script.scheduler == "pbs" and shape.per_node is None:
        return None
    per_node = shape.per_node
    if per_node and (total is None or shape.nodes is None or total <= per_node * shape.nodes):
        return per_node
    return None


def _ibrun(launch: Launch, shape: JobShape) -> Started:
    total = _number(launch, "ntasks")
    if total is None and not _given(launch, "ntasks"):
        total = shape.tasks
    stated = launch.variable("TACC_TASKS_PER_NODE")
    per_node = stated.number if stated is not None else shape.per_node
    nodes = -(-total // per_node) if total and per_node else None
    return Started(nodes, per_node, total, True, fills=True)


def _jsrun(launch: Launch, shape: JobShape) -> Started:
    sets = _number(launch, "resource_sets")
    tasks = _number(launch, "tasks_per_rs")
    per_host = _number(launch, "rs_per_host")
    if tasks is None and not _given(launch, "tasks_per_rs"):
        tasks = 1
    if sets is None and per_host and shape.nodes and not _given(launch, "resource_sets"):
        sets = per_host * shape.nodes
    nodes = -(-sets // per_host) if sets and per_host else shape.nodes if sets else None
    total = sets * tasks if sets and tasks else None
    if per_host is None and sets and nodes and sets % nodes == 0:
        per_host = sets // nodes
    per_node = per_host * tasks if per_host and tasks else None
    cores, gpus = _number(launch, "cpus_per_rs"), _number(launch, "gpus_per_rs")
    if gpus is None and not _given(launch, "gpus_per_rs"):
        gpus = 0
    return Started(nodes, per_node, total, True, cores // tasks if cores and tasks else None, None, gpus)


def _plain(launch: Launch, shape: JobShape) -> Started:
    total, per_node = _number(launch, "ntasks"), _number(launch, "ntasks_per_node")
    nodes = -(-total // per_node) if total and per_node else None
    return Started(nodes, per_node, total, True, _number(launch, "cpus_per_task"), fills=True)


def _remote(launch: Launch, shape: JobShape) -> Started:
    hosts = launch.value("hosts")
    if hosts is None:
        unique = launch.launcher == "pbsdsh" and _given(launch, "u")
        return Started(shape.nodes, 1, shape.nodes, True) if unique else Started(None, None, None, True)
    if launch.launcher == "ssh":
        if launch.command.loop and hosts.has("loop_host", "loop", "host"):
            return Started(shape.nodes, 1, shape.nodes, True)
        return Started(1, 1, 1, True)
    if hosts.has("hosts_csv", "host_list", "nodelist"):
        return Started(shape.nodes, 1, shape.nodes, True)
    return Started(None, 1, None, True)
