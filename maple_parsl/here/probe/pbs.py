"""A PBS cluster's facts, from what its own commands print."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from maple_parsl.here.probe.asking import Asker
from maple_parsl.here.probe.draft import Draft, Fact
from maple_parsl.here.probe.gpus import TORCH, vendor_of

SERVER = "qstat -Bf -F json"
QUEUES = "qstat -Qf -F json"
NODES = "pbsnodes -av -F json"
_UNITS = {"b": -30, "kb": -20, "mb": -10, "gb": 0, "tb": 10}
Table = Mapping[str, Any]


def probe(draft: Draft, ask: Asker) -> None:
    """Put into the draft what PBS says of itself; nothing is submitted."""
    servers = _answer(ask(*SERVER.split()))
    server = next(iter(_tables(servers.get("Server")).values()), {})
    queues = _tables(_answer(ask(*QUEUES.split())).get("Queue"))
    nodes = _tables(_answer(ask(*NODES.split())).get("nodes"))
    draft.put("scheduler", "kind", "pbs", SERVER if server else "qsub is on PATH")
    draft.put("scheduler", "queue_option", "queue", QUEUES)
    for key, value in (("version", servers.get("pbs_version")), ("max_array", server.get("max_array_size"))):
        if isinstance(value, (str, int)):
            draft.put("scheduler", key, value, SERVER)
    draft.unknown("scheduler", "account", "whether each job must name one: the site's guide; required unless stated")
    draft.unknown("scheduler", "shebang", "modules in a job may need a login shell: #!/bin/bash -l")
    draft.unknown("scheduler", "requeue", "try qsub -r y, or ask the site")
    if name := servers.get("pbs_server"):
        draft.put("detect", "pbs_server", str(name), SERVER)
    kinds = _kinds(draft, nodes)
    draft.put("directives", "gpu_request", "select-ngpus" if any(_gpus(n) for n in nodes.values()) else "none", NODES)
    draft.unknown("directives", "always", "such as -l filesystems=…, where the site wants it in every job")
    default = server.get("default_queue")
    for name, queue in queues.items():
        draft.queues.append(dict(_queue(name, queue, kinds, name == default)))
    _launcher(draft, ask)
    draft.put("rendezvous", "host", "first-host", "qsub(1B): PBS_NODEFILE lists a job's hosts, the first one first")
    draft.unknown("rendezvous", "interface", "ip -brief link on a compute node; the site's guide on NCCL")


def _answer(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text[text.find("{") :], strict=False) if "{" in text else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _tables(value: object) -> dict[str, dict[str, Any]]:
    return {k: v for k, v in value.items() if isinstance(v, dict)} if isinstance(value, dict) else {}


def _has(node: Table) -> Table:
    found = node.get("resources_available")
    return found if isinstance(found, dict) else {}


def _number(value: object) -> int:
    return int(value) if isinstance(value, (int, str)) and str(value).isdecimal() else 0


def _gpus(node: Table) -> int:
    return _number(_has(node).get("ngpus"))


def _gib(value: object) -> float | None:
    found = re.fullmatch(r"(\d+)([kmgt]?b)", str(value).lower())
    return round(int(found[1]) * 2.0 ** _UNITS[found[2]], 1) if found else None


def _kinds(draft: Draft, nodes: Mapping[str, Table]) -> list[str]:
    groups: dict[tuple[int, int, str], list[Table]] = {}
    for node in nodes.values():
        model = str(_has(node).get("gpu_type") or _has(node).get("gpu_model") or "")
        groups.setdefault((_gpus(node), _number(_has(node).get("ncpus")), model), []).append(node)
    names: list[str] = []
    taken: Counter[str] = Counter()
    for (gpus, cpus, model), members in sorted(groups.items(), key=lambda item: -len(item[1])):
        base = (re.sub(r"[^A-Za-z0-9._+-]", "-", model).strip("-.") or "gpu") if gpus else "cpu"
        taken[base] += 1
        names.append(base if taken[base] == 1 else f"{base}-{taken[base]}")
        _kind(draft, f"kinds.{names[-1]}", gpus, cpus, model, members)
    return names


def _kind(draft: Draft, table: str, gpus: int, cpus: int, model: str, members: list[Table]) -> None:
    put = draft.put
    put(table, "title", f"{gpus} x {model or 'GPU'}" if gpus else "no GPU", f"{NODES}: resources_available")
    put(table, "nodes", len(members), NODES)
    put(table, "gpus", gpus, f"{NODES}: ngpus")
    put(table, "devices", max(1, gpus), f"{NODES}: ngpus, as the scheduler counts" if gpus else "one process per node")
    vendor = vendor_of(model) if model else None
    if not gpus:
        put(table, "vendor", "none", f"{NODES}: no ngpus")
        put(table, "backend", "gloo", "PyTorch's documentation: gloo is its CPU backend")
        put(table, "torch_device", "cpu", f"{NODES}: no ngpus")
    elif vendor:
        put(table, "vendor", vendor, f"inferred from the node's GPU type {model!r}, a product of that maker")
        put(table, "backend", TORCH[vendor][0], "follows from the maker (PyTorch's documentation)")
        put(table, "torch_device", TORCH[vendor][1], "follows from the maker (PyTorch's documentation)")
    else:
        for key, value in (("vendor", "none"), ("backend", "gloo"), ("torch_device", "cpu")):
            draft.ask(table, key, value, "PBS does not tell the maker of the GPUs; nvidia-smi on a node does")
    if cpus:
        draft.unknown(table, "cores", f"physical cores: lscpu on a node; PBS counts {cpus} ncpus, threads or cores")
    memory = [found for node in members if (found := _gib(_has(node).get("mem")))]
    if memory:
        put(table, "memory_gib", min(memory), f"{NODES}: the least mem")
    parts = [f"ncpus={cpus}"] if cpus else []
    parts += ["ngpus={devices}"] if gpus else []
    if parts:
        put(table, "select", ":".join([*parts, "mpiprocs={tasks}"]), f"{NODES}: ncpus, ngpus; qsub(1B): mpiprocs")
    draft.unknown(table, "device_map", "nvidia-smi topo -m (or rocm-smi --showtopo) on a compute node")


def _queue(name: str, queue: Table, kinds: list[str], default: bool) -> Iterator[tuple[str, Fact]]:
    yield "name", Fact(name, QUEUES)
    one = len(kinds) == 1
    told = f"{NODES}: all nodes are alike" if one else "which nodes it has is not told; leave in those it offers"
    yield "kinds", Fact([*kinds] or ["default"], told, edit=not one)
    most, least = (_tables({"x": queue.get(f"resources_{which}")}).get("x", {}) for which in ("max", "min"))
    if _number(least.get("nodect")) > 1:
        yield "min_nodes", Fact(_number(least["nodect"]), f"{QUEUES}: resources_min.nodect")
    if _number(most.get("nodect")):
        yield "max_nodes", Fact(_number(most["nodect"]), f"{QUEUES}: resources_max.nodect")
    else:
        yield "max_nodes", Fact(None, f"{QUEUES}: resources_max.nodect is not set")
    if limit := most.get("walltime"):
        yield "max_walltime", Fact(str(limit), f"{QUEUES}: resources_max.walltime")
    else:
        yield "max_walltime", Fact(None, f"{QUEUES}: resources_max.walltime is not set")
    if default:
        yield "default", Fact(True, f"{SERVER}: default_queue")
    if str(queue.get("enabled")) != "True" or str(queue.get("started")) != "True":
        yield "batch", Fact(False, f"{QUEUES}: enabled, started on that day")
    if str(queue.get("acl_user_enable")) == "True" or str(queue.get("acl_group_enable")) == "True":
        yield "open", Fact(False, f"{QUEUES}: an access list")


def _launcher(draft: Draft, ask: Asker) -> None:
    table = "launchers.default"
    said = ask("mpiexec", "--version")
    by = f"mpiexec --version: {said.strip().splitlines()[0][:80] if said.strip() else ''}"
    if "OpenRTE" in said or "Open MPI" in said:
        dialect, names = "openmpi", ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE")
    elif "HYDRA" in said or "Intel(R) MPI" in said:
        dialect, names = "hydra", ("PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE")
    else:
        for key, value in (("command", "mpiexec"), ("dialect", "openmpi")):
            draft.ask(table, key, value, "mpiexec --version does not tell whose it is: openmpi, hydra or pals")
        for key, value in (("rank", "RANK"), ("local_rank", "LOCAL_RANK"), ("world_size", "SIZE")):
            draft.ask(table, key, [f"OMPI_COMM_WORLD_{value}"], "goes with the dialect")
        return
    draft.put(table, "command", "mpiexec", by)
    draft.put(table, "dialect", dialect, by)
    for key, value in zip(("rank", "local_rank", "world_size"), names, strict=True):
        draft.put(table, key, [value], f"documented by {dialect}")
