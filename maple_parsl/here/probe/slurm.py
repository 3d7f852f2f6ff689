"""A Slurm cluster's facts, from what its own commands print."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from maple_parsl.here.probe.asking import Asker
from maple_parsl.here.probe.draft import Draft, Fact
from maple_parsl.here.probe.gpus import TORCH, vendor_of

CONFIG = "scontrol show config"
PARTITIONS = "scontrol --oneliner show partition"
NODES = "scontrol --oneliner show node"
_NOTHING = ("(null)", "N/A", "UNLIMITED", "NONE", "")
_PAIR = re.compile(r"(?:^|\s)([A-Za-z][A-Za-z0-9_/]*)=")


def probe(draft: Draft, ask: Asker) -> None:
    """Put into the draft what Slurm says of itself; nothing is submitted."""
    config = dict(re.findall(r"^(\w+)\s*=\s*(.*?)\s*$", ask(*CONFIG.split()), re.M))
    partitions = [pairs(line) for line in ask(*PARTITIONS.split()).splitlines() if "PartitionName=" in line]
    nodes = [pairs(line) for line in ask(*NODES.split()).splitlines() if "NodeName=" in line]
    _scheduler(draft, config)
    _accounts(draft, ask, config)
    kinds = _kinds(draft, nodes)
    _directives(draft, config, partitions, nodes)
    _queues(draft, config, partitions, kinds)
    version = ask("srun", "--version").strip()
    _launcher(draft, version)
    draft.put("rendezvous", "host", "first-host", "scontrol show hostnames names a job's hosts; processes start there")
    draft.unknown("rendezvous", "interface", "ip -brief link on a compute node; the site's guide on NCCL")


def pairs(line: str) -> dict[str, str]:
    """``Key=value`` of one line of scontrol; a value may hold blanks (``OS=Linux 6.1 #1``)."""
    marks = list(_PAIR.finditer(line))
    ends = [*(mark.start() for mark in marks[1:]), len(line)]
    return {mark[1]: line[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)}


def _known(values: Mapping[str, str], key: str) -> str | None:
    value = values.get(key, "")
    return None if value in _NOTHING else value


def _scheduler(draft: Draft, config: Mapping[str, str]) -> None:
    draft.put("scheduler", "kind", "slurm", CONFIG if config else "sbatch is on PATH")
    draft.put("scheduler", "queue_option", "partition", PARTITIONS)
    draft.put("scheduler", "signal", True, "sbatch(1): --signal")
    if version := _known(config, "SLURM_VERSION"):
        draft.put("scheduler", "version", version, f"{CONFIG}: SLURM_VERSION")
    size = config.get("MaxArraySize", "")
    if size.isdecimal() and int(size) > 0:
        # Indices go from 0 to one less than MaxArraySize (slurm.conf(5)).
        draft.put("scheduler", "max_array", int(size), f"{CONFIG}: MaxArraySize")
    requeue = config.get("JobRequeue", "")
    if requeue == "1":
        draft.put("scheduler", "requeue", True, f"{CONFIG}: JobRequeue=1")
    else:
        draft.unknown("scheduler", "requeue", f"JobRequeue is {requeue or 'not told'}; try sbatch --requeue, or ask")
    if cluster := _known(config, "ClusterName"):
        draft.put("detect", "slurm_cluster", cluster, f"{CONFIG}: ClusterName")


def _accounts(draft: Draft, ask: Asker, config: Mapping[str, str]) -> None:
    storage = config.get("AccountingStorageType", "")
    if storage.endswith("/none"):
        draft.put("scheduler", "account", "optional", f"{CONFIG}: AccountingStorageType={storage}, so none is charged")
        return
    import getpass

    query = ("sacctmgr", "-nP", "show", "assoc", f"user={getpass.getuser()}", "format=cluster,account,qos")
    rows = [line.split("|") for line in ask(*query).splitlines() if line.count("|") == 2]
    cluster = config.get("ClusterName", "")
    mine = [row for row in rows if row[0] == cluster] or rows
    accounts = sorted({row[1] for row in mine})
    ask("sacctmgr", "-nP", "show", "qos", "format=name,maxwall,maxtresperjob,maxsubmitpu")
    enforced = "associations" in config.get("AccountingStorageEnforce", "")
    told = f"{CONFIG}: AccountingStorageEnforce={config.get('AccountingStorageEnforce', '')}"
    if config:
        draft.put("scheduler", "account", "required" if enforced else "optional", told)
    if len(accounts) == 1:
        draft.put("defaults", "account", accounts[0], "sacctmgr show assoc: the only account you have here")
    elif accounts:
        draft.unknown("defaults", "account", f"choose one of yours: {', '.join(accounts)} (sacctmgr show assoc)")
    if qos := sorted({name for row in mine for name in row[2].split(",") if name}):
        draft.notes.append(f"your QOS here: {', '.join(qos)} (sacctmgr show assoc); sacctmgr show qos has their limits")


def _gres(node: Mapping[str, str]) -> tuple[str | None, int]:
    """Type and count of a node's GPUs: ``gpu:a100:4(S:0-1)``, ``gpu:4``."""
    found = re.search(r"(?:^|,)gpu(?::([^:,(]+))?:(\d+)", node.get("Gres", ""))
    if not found:
        return None, 0
    return (None if not found[1] or found[1].isdecimal() else found[1]), int(found[2])


def _shape(node: Mapping[str, str]) -> tuple[str | None, int, int, int, str]:
    kind, count = _gres(node)
    cores = int(node.get("Sockets", 0) or 0) * int(node.get("CoresPerSocket", 0) or 0)
    return kind, count, cores, int(node.get("CPUTot", 0) or 0), node.get("Arch", "")


def _kinds(draft: Draft, nodes: list[dict[str, str]]) -> dict[str, str]:
    """One kind per shape of node; the kind of each node by its name."""
    groups: dict[tuple[str | None, int, int, int, str], list[dict[str, str]]] = {}
    for node in nodes:
        groups.setdefault(_shape(node), []).append(node)
    names: dict[str, str] = {}
    taken: Counter[str] = Counter()
    for shape, members in sorted(groups.items(), key=lambda item: -len(item[1])):
        model, gpus = shape[0], shape[1]
        base = re.sub(r"[^A-Za-z0-9._+-]", "-", model or "gpu") if gpus else "cpu"
        base = base if base[0].isalnum() else f"gpu{base}"
        taken[base] += 1
        name = base if taken[base] == 1 else f"{base}-{taken[base]}"
        names |= {node["NodeName"]: name for node in members}
        _kind(draft, f"kinds.{name}", shape, members)
    return names


def _kind(
    draft: Draft, table: str, shape: tuple[str | None, int, int, int, str], members: list[dict[str, str]]
) -> None:
    model, gpus, cores, threads, arch = shape
    put = draft.put
    put(table, "title", f"{gpus} x {model or 'GPU'}" if gpus else "no GPU", f"{NODES}: Gres")
    put(table, "nodes", len(members), NODES)
    vendor = vendor_of(model) if model else None
    put(table, "gpus", gpus, f"{NODES}: Gres")
    put(table, "devices", max(1, gpus), f"{NODES}: Gres, as the scheduler counts" if gpus else "one process per node")
    if not gpus:
        put(table, "vendor", "none", f"{NODES}: no GPU in Gres")
        put(table, "backend", "gloo", "PyTorch's documentation: gloo is its CPU backend")
        put(table, "torch_device", "cpu", f"{NODES}: no GPU in Gres")
    elif vendor:
        put(table, "vendor", vendor, f"inferred from the GRES type {model!r}, a product of that maker")
        put(table, "backend", TORCH[vendor][0], "follows from the maker (PyTorch's documentation)")
        put(table, "torch_device", TORCH[vendor][1], "follows from the maker (PyTorch's documentation)")
    else:
        for key, value in (("vendor", "none"), ("backend", "gloo"), ("torch_device", "cpu")):
            draft.ask(table, key, value, f"the GRES type {model!r} does not tell the maker; nvidia-smi on a node does")
    if model and any(model in (node.get("Gres") or "") for node in members):
        put(table, "gres_type", model, f"{NODES}: Gres")
    if arch in ("x86_64", "aarch64", "ppc64le"):
        put(table, "arch", arch, f"{NODES}: Arch")
    if cores:
        put(table, "cores", cores, f"{NODES}: Sockets x CoresPerSocket")
    if threads > cores > 0:
        put(table, "hw_threads", threads, f"{NODES}: CPUTot")
    memory = [int(node["RealMemory"]) for node in members if node.get("RealMemory", "").isdecimal()]
    if memory:
        put(table, "memory_gib", round(min(memory) / 1024, 1), f"{NODES}: the least RealMemory")
    features = sorted({node["ActiveFeatures"] for node in members if _known(node, "ActiveFeatures")})
    draft.unknown(table, "constraint", f"features of these nodes: {' '.join(features)[:200] or 'none'} ({NODES})")
    draft.unknown(table, "device_map", "nvidia-smi topo -m (or rocm-smi --showtopo) on a compute node")


def _directives(
    draft: Draft, config: Mapping[str, str], partitions: list[dict[str, str]], nodes: list[dict[str, str]]
) -> None:
    if any(_gres(node)[1] for node in nodes):
        tres = "cons_tres" in config.get("SelectType", "")
        why = f"{CONFIG}: SelectType={config.get('SelectType', '')}"
        draft.put("directives", "gpu_request", "gpus-per-node" if tres else "gres", why)
        if any(_gres(node)[0] for node in nodes):
            draft.notes.append("GPUs are asked for with their GRES type; remove gres_type where any type will do")
    else:
        draft.put("directives", "gpu_request", "none", f"{NODES}: no GPU in Gres")
    if "MEMORY" in config.get("SelectTypeParameters", "").upper():
        small = [p for p in partitions if _known(p, "DefMemPerCPU") or _known(p, "DefMemPerNode")]
        if small:
            draft.put("directives", "memory", "whole-node", f"{PARTITIONS}: DefMemPerCPU or DefMemPerNode limits it")
    draft.unknown("directives", "forbidden", "the site's guide on jobs")


def _queues(
    draft: Draft, config: Mapping[str, str], partitions: list[dict[str, str]], kinds: Mapping[str, str]
) -> None:
    for partition in partitions:
        if partition.get("RootOnly") == "YES" or partition.get("Hidden") == "YES":
            continue
        draft.queues.append(dict(_queue(config, partition, kinds)))


def _queue(
    config: Mapping[str, str], partition: Mapping[str, str], kinds: Mapping[str, str]
) -> Iterator[tuple[str, Fact]]:
    yield "name", Fact(partition["PartitionName"], PARTITIONS)
    members = set(expanded(partition.get("Nodes", "")))
    offered = [kind for kind, _ in Counter(kinds[name] for name in members if name in kinds).most_common()]
    if offered:
        yield "kinds", Fact([*offered], f"{NODES}, {PARTITIONS}: Nodes")
    else:
        yield "kinds", Fact(sorted(set(kinds.values())) or ["default"], "which nodes it has is not told", edit=True)
    least = partition.get("MinNodes", "")
    if least.isdecimal() and int(least) > 1:
        yield "min_nodes", Fact(int(least), f"{PARTITIONS}: MinNodes")
    most = _known(partition, "MaxNodes") or partition.get("TotalNodes", "")
    if most.isdecimal() and int(most) > 0:
        yield "max_nodes", Fact(int(most), f"{PARTITIONS}: MaxNodes, TotalNodes")
    if limit := _known(partition, "MaxTime"):
        yield "max_walltime", Fact(limit, f"{PARTITIONS}: MaxTime")
    else:
        yield "max_walltime", Fact(None, f"{PARTITIONS}: MaxTime is not set")
    if partition.get("OverSubscribe") == "EXCLUSIVE" or "linear" in config.get("SelectType", ""):
        yield "exclusive", Fact(True, f"{PARTITIONS}: OverSubscribe; {CONFIG}: SelectType")
    elif "cons" in config.get("SelectType", ""):
        yield "shared", Fact(True, f"{CONFIG}: SelectType gives parts of nodes")
    if partition.get("Default") == "YES":
        yield "default", Fact(True, f"{PARTITIONS}: Default")
    if partition.get("State") not in ("UP", None):
        yield "batch", Fact(False, f"{PARTITIONS}: State={partition['State']} on that day")
    allowed = _known(partition, "AllowAccounts")
    if allowed and allowed != "ALL":
        yield "note", Fact(f"only accounts {allowed[:200]}", f"{PARTITIONS}: AllowAccounts")


def _launcher(draft: Draft, version: str) -> None:
    table, by = "launchers.default", f"srun --version: {version}; srun(1)"
    if not version:
        draft.ask(table, "command", "srun", "srun did not answer")
    else:
        draft.put(table, "command", "srun", by)
    by = "srun(1), output environment variables"
    draft.put(table, "dialect", "slurm", by)
    for key, name in (
        ("rank", "SLURM_PROCID"),
        ("local_rank", "SLURM_LOCALID"),
        ("world_size", "SLURM_NTASKS"),
        ("node_rank", "SLURM_NODEID"),
    ):
        draft.put(table, key, [name], by)


def expanded(hosts: str) -> list[str]:
    """The names in a host list such as ``gpu[01-03,7],login1``; an odd one is left out."""
    found: list[str] = []
    for part in re.findall(r"[^,\[]+(?:\[[^\]]*\][^,\[]*)*", hosts):
        found += _expand(part.strip())
        if len(found) > 100_000:
            break
    return found


def _expand(part: str) -> list[str]:
    group = re.search(r"\[([^\]]*)\]", part)
    if not group:
        return [part] if part else []
    names: list[str] = []
    for piece in group[1].split(","):
        low, dash, high = piece.partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()) or int(high or low) - int(low) > 100_000:
            continue
        for number in range(int(low), int(high or low) + 1):
            names += _expand(f"{part[: group.start()]}{number:0{len(low)}d}{part[group.end() :]}")
    return names
