"""Ranks, devices, cores and rendezvous of the processes of a program."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from maple_parsl.judge.case import Case
from maple_parsl.judge.inside.cores import numbers
from maple_parsl.judge.sites import Kind
from maple_parsl.judge.verdict import Fault

Process = dict[str, Any]
_LAUNCHER_RANK = ("SLURM_PROCID", "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
_LAUNCHER_LOCAL = tuple(
    "SLURM_LOCALID PALS_LOCAL_RANKID PMI_LOCAL_RANK MPI_LOCALRANKID OMPI_COMM_WORLD_LOCAL_RANK"
    " MV2_COMM_WORLD_LOCAL_RANK".split()
)
_LAUNCHER_SIZE = ("SLURM_NTASKS", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE")


def place_faults(case: Case, kind: Kind, world: dict[str, Any], found: list[Process]) -> Iterator[Fault]:
    """What is wrong with where the processes believe to be."""
    ranks = [_number(case, item, "RANK", _LAUNCHER_RANK) for item in found]
    sizes = [_number(case, item, "WORLD_SIZE", _LAUNCHER_SIZE) for item in found]
    locals_ = [_number(case, item, "LOCAL_RANK", _LAUNCHER_LOCAL) for item in found]
    yield from _rank_faults(case, ranks, sizes)
    if None not in ranks and len(set(ranks)) == len(found):
        by_rank = sorted(zip(ranks, found, strict=True), key=lambda pair: pair[0] or 0)
        nodes = [item["node"] for _, item in by_rank]
        if nodes != sorted(nodes):
            yield Fault(kind="rank-order", message=f"ranks in order stand on nodes {nodes}")
    yield from _device_faults(case, kind, world, found, locals_)
    yield from _core_faults(case, kind, found, locals_)
    if case.ranks == "torch" and case.world_size > 1:
        yield from _rendezvous(case, world, found, ranks)


def _number(case: Case, item: Process, torch: str, launcher: tuple[str, ...]) -> int | None:
    names = [torch] if case.ranks == "torch" else [torch, *launcher]
    value = next((item["env"][name] for name in names if item["env"].get(name)), "")
    return int(value) if value.isdecimal() else None


def _rank_faults(case: Case, ranks: list[int | None], sizes: list[int | None]) -> Iterator[Fault]:
    if missing := ranks.count(None):
        yield Fault(kind="rank", message=f"{missing} of {len(ranks)} processes are not told their rank")
    elif len(set(ranks)) != len(ranks):
        rank, times = Counter(ranks).most_common(1)[0]
        yield Fault(kind="rank", message=f"{times} processes believe to be rank {rank}")
    elif set(ranks) != set(range(case.world_size)):
        known = sorted(rank for rank in ranks if rank is not None)
        yield Fault(kind="rank", message=f"ranks {known[0]} to {known[-1]}, not 0 to {case.world_size - 1}")
    wrong = {size for size in sizes if size != case.world_size}
    if wrong:
        yield Fault(kind="world-size", message=f"world size {wrong.pop()}, not {case.world_size}")


def _visible(kind: Kind, item: Process) -> list[int] | None:
    """Devices a process sees, in its order, as indices of its node; None for all in their own order."""
    granted: list[int] | None = item["devices"]
    text = item["env"].get(kind.visible)
    if text is None:
        return granted
    own = granted if granted is not None else list(range(kind.devices))
    chosen = [int(part.split(".")[0]) for part in text.split(",") if part.split(".")[0].isdecimal()]
    if kind.vendor == "intel" and "." in text:
        chosen = [int(a) * 2 + int(b) for a, b in re.findall(r"(\d+)\.(\d+)", text)]
    return [own[index] for index in chosen if index < len(own)]


def _device(kind: Kind, item: Process, local: int | None) -> int | None:
    """The device a process takes: the one of its local rank among those it sees."""
    visible = _visible(kind, item)
    if local is None:
        return None
    if visible is None:
        return local if local < kind.devices else None
    if len(visible) == 1 and local > 0:
        return None
    return visible[local] if local < len(visible) else None


def _device_faults(
    case: Case, kind: Kind, world: dict[str, Any], found: list[Process], locals_: list[int | None]
) -> Iterator[Fault]:
    if None in locals_:
        yield Fault(kind="local-rank", message="a process is not told its local rank")
        return
    devices = [_device(kind, item, local) for item, local in zip(found, locals_, strict=True)]
    for item, local, device in zip(found, locals_, devices, strict=True):
        if device is None:
            seen = _visible(kind, item)
            message = f"local rank {local} has no device: it sees {seen if seen is not None else kind.devices}"
            yield Fault(kind="device", message=message)
            break
    places = Counter((item["node"], device) for item, device in zip(found, devices, strict=True) if device is not None)
    shared = [place for place, times in places.items() if times > 1]
    if shared:
        node, device = shared[0]
        yield Fault(kind="device", message=f"{places[shared[0]]} processes share device {device} of node {node}")


def _core_faults(case: Case, kind: Kind, found: list[Process], locals_: list[int | None]) -> Iterator[Fault]:
    """Cores of processes that were bound one by one, and of the workers of an agent."""
    several = case.devices_per_node > 1
    for item, local in zip(found, locals_, strict=True):
        cores, launched = item["cores"], item["chain"]
        if cores is None or not several:
            continue
        agent = len(launched) > 1
        if agent and len(cores) < case.devices_per_node and kind.cores >= case.devices_per_node:
            message = f"{case.devices_per_node} workers of {launched[-1]} share {len(cores)} core(s)"
            yield Fault(kind="cores", message=message)
            return
        if agent or not kind.near:
            continue
        device = _device(kind, item, local)
        if device is not None and not set(cores) & set(numbers(kind.near[device], kind.cores)):
            message = (
                f"local rank {local} runs on cores {cores[0]}-{cores[-1]}; device {device} is at {kind.near[device]}"
            )
            yield Fault(kind="affinity", message=message)
            return
    bound = [item for item in found if item["cores"] is not None and len(item["chain"]) == 1]
    taken = Counter((item["node"], core) for item in bound for core in item["cores"])
    if taken and max(taken.values()) > 1:
        (node, core), times = taken.most_common(1)[0]
        yield Fault(kind="cores", message=f"{times} processes are bound to core {core} of node {node}")


def _rendezvous(case: Case, world: dict[str, Any], found: list[Process], ranks: list[int | None]) -> Iterator[Fault]:
    addresses = {item["env"].get("MASTER_ADDR", "") for item in found}
    ports = {item["env"].get("MASTER_PORT", "") for item in found}
    if "" in addresses:
        yield Fault(kind="rendezvous-address", message="a process has no MASTER_ADDR")
    elif len(addresses) > 1:
        yield Fault(kind="rendezvous-address", message=f"processes look in different places: {sorted(addresses)[:3]}")
    else:
        yield from _address(case, world, found, ranks, addresses.pop())
    if "" in ports:
        yield Fault(kind="rendezvous-port", message="a process has no MASTER_PORT")
    elif len(ports) > 1:
        yield Fault(kind="rendezvous-port", message=f"processes use different ports: {sorted(ports)[:3]}")
    else:
        port = ports.pop()
        if not port.isdecimal() or not 1024 <= int(port) <= 65535:
            yield Fault(kind="rendezvous-port", message=f"port {port!r} is none a user may listen on")


def _address(
    case: Case, world: dict[str, Any], found: list[Process], ranks: list[int | None], address: str
) -> Iterator[Fault]:
    names = [{node["name"], node["fqdn"], node["address"], *node["aliases"]} for node in world["nodes"]]
    if address in ("localhost", "::1", "0.0.0.0") or address.startswith("127."):
        if case.nodes > 1:
            yield Fault(kind="rendezvous-address", message=f"{address} is a different machine on every node")
        return
    place = next((index for index, known in enumerate(names) if address in known), None)
    if place is None:
        yield Fault(kind="rendezvous-address", message=f"{address!r} is none of the job's nodes")
    elif 0 in ranks and place not in [item["node"] for item, rank in zip(found, ranks, strict=True) if rank == 0]:
        yield Fault(kind="rendezvous-address", message=f"{address} is not the node of rank 0")
