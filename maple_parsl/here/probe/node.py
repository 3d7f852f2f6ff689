"""What this machine says of modules, devices and file systems: a login node, or a compute node inside a job."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from maple_parsl.here.probe.asking import Asker
from maple_parsl.here.probe.draft import Draft, Value
from maple_parsl.here.probe.slurm import expanded

MODULES = "module -t avail"
TOPOLOGY = "nvidia-smi topo -m"
_WANTED = re.compile(
    r"torch|conda|miniforge|mamba|cuda|rocm|oneapi|frameworks|nccl|rccl|python|apptainer|singularity", re.I
)
_SHARED = frozenset("nfs nfs4 lustre gpfs beegfs ceph fuse.ceph wekafs panfs pvfs2 afs orangefs".split())
_MOST = 12


def probe(draft: Draft, ask: Asker, environ: Mapping[str, str], mounts: Path = Path("/proc/mounts")) -> None:
    """Put in what can be told from here; a login node's devices are no fact of the compute nodes."""
    _modules(draft, ask)
    _storage(draft, environ, mounts)
    _devices(draft, ask, environ)


def _modules(draft: Draft, ask: Asker) -> None:
    table = "environments.default"
    # The module command is a function of the login shell, and prints to standard error.
    said = ask("bash", "-lc", f"{MODULES} 2>&1")
    names = [
        line.strip() for line in said.splitlines() if re.fullmatch(r"[\w.+-]+(/[\w.+/-]+)*(\(\w+\))?", line.strip())
    ]
    useful = sorted({name for name in names if _WANTED.search(name)})
    shown = f"{MODULES} lists {', '.join(useful[:_MOST])}" if useful else f"{MODULES}: none found that brings it"
    draft.unknown(table, "base", "lines every job needs, such as module load …: the site's guide")
    draft.unknown(table, "framework", f"lines that bring the site's PyTorch. {shown}")
    draft.unknown(table, "outbound", "whether compute nodes reach the internet: direct, proxy or none")
    engines = [name for name in ("apptainer", "singularity", "shifter", "podman-hpc") if ask(name, "--version").strip()]
    if len(engines) == 1:
        draft.put(table, "container_engine", engines[0], f"{engines[0]} --version")
    else:
        seen = f"several answer: {', '.join(engines)}" if engines else "no engine answers on this host"
        draft.unknown(table, "container_engine", seen)
    draft.unknown(f"{table}.network", "NCCL_SOCKET_IFNAME", "the site's guide on NCCL or RCCL")


def _storage(draft: Draft, environ: Mapping[str, str], mounts: Path) -> None:
    try:
        rows = [line.split() for line in mounts.read_text(errors="replace").splitlines()]
    except OSError:
        rows = []
    points = {row[1].replace("\\040", " "): row[2] for row in rows if len(row) > 2}
    shared: list[Value] = []
    for name in ("HOME", "WORK", "SCRATCH", "PROJECT"):
        folder = environ.get(name, "")
        if folder.startswith("/") and (point := _mount_of(folder, points)) and points[point] in _SHARED:
            shared.append(f"${name}")
    if shared:
        draft.put("storage", "shared", shared, f"{mounts}: a network file system; that all nodes mount it is inferred")
    else:
        draft.unknown("storage", "shared", "folders that all nodes see, such as $SCRATCH")
    draft.unknown("storage", "purge_days", "after how many unused days files are deleted")


def _mount_of(folder: str, points: Mapping[str, str]) -> str | None:
    path = os.path.realpath(folder)
    while path not in points:
        if path == "/":
            return None
        path = os.path.dirname(path)
    return path


def _devices(draft: Draft, ask: Asker, environ: Mapping[str, str]) -> None:
    """Device map and memory, only where this host is one of the nodes: inside a job, or by its kind's only name."""
    kinds = [table for table, facts in draft.tables.items() if table.startswith("kinds.") and _count(draft, table)]
    inside = _in_job(environ)
    listed = ask("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
    rows = [line.rpartition(",") for line in listed.splitlines() if "," in line]
    if not rows:
        for words in (("rocm-smi", "--showproductname"), ("xpu-smi", "discovery")):
            if said := ask(*words).strip():
                draft.notes.append(f"{' '.join(words)} on {draft.host}: {said.splitlines()[0][:120]}")
        return
    fitting = [table for table in kinds if _count(draft, table) == len(rows)]
    if not inside or len(fitting) != 1:
        where = "in no job" if not inside else "which fits no single kind of node"
        draft.notes.append(f"{len(rows)} x {rows[0][0]} on {draft.host}, {where}: not taken as a fact of the nodes")
        return
    table = fitting[0]
    by = "nvidia-smi --query-gpu, inside a job"
    draft.put(table, "vendor", "nvidia", by)
    draft.put(table, "backend", "nccl", "follows from the maker (PyTorch's documentation)")
    draft.put(table, "torch_device", "cuda", "follows from the maker (PyTorch's documentation)")
    if all(memory.strip().isdecimal() for _, _, memory in rows):
        draft.put(table, "device_memory_gib", int(min(int(m) for _, _, m in rows) / 1024), by)
    if len(affinity := topology(ask(*TOPOLOGY.split()))) == len(rows):
        draft.put(table, "device_map", [*affinity], f"{TOPOLOGY}, inside a job")


def _count(draft: Draft, table: str) -> int:
    fact = draft.tables[table].get("gpus")
    return fact.value if fact and isinstance(fact.value, int) else 0


def _in_job(environ: Mapping[str, str]) -> bool:
    host = os.uname().nodename.partition(".")[0]
    nodes = expanded(environ.get("SLURM_JOB_NODELIST", ""))
    return host in {name.partition(".")[0] for name in nodes} or bool(environ.get("PBS_NODEFILE"))


def topology(text: str) -> list[dict[str, Value]]:
    """The cores and NUMA node of each GPU, as ``nvidia-smi topo -m`` prints them in its last columns."""
    found: list[dict[str, Value]] = []
    for line in text.splitlines():
        row = re.match(r"\s*GPU\d+\s", re.sub(r"\x1b\[[0-9;]*m", "", line))
        cells = re.sub(r"\x1b\[[0-9;]*m", "", line).split("\t")
        cores = [cell.strip() for cell in cells if re.fullmatch(r"\s*\d+(-\d+)?(,\d+(-\d+)?)*\s*", cell)]
        if not row or not cores:
            continue
        entry: dict[str, Value] = {"cores": cores[0]}
        if len(cores) > 1 and cores[1].isdecimal():
            entry["numa"] = int(cores[1])
        found.append(entry)
    return found
