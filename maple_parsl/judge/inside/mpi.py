"""mpiexec, mpirun and ibrun in the dialects of PALS, Hydra (MPICH, Intel MPI, MVAPICH2) and Open MPI.

Written from knowledge of these launchers; not yet checked against their manuals or compared with real ones.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from maple_parsl.judge.inside import options
from maple_parsl.judge.inside.cores import bound
from maple_parsl.judge.inside.model import Client, Refusal, Task

if TYPE_CHECKING:
    from maple_parsl.judge.inside.supervisor import Cluster

_TOTAL = dict.fromkeys(("-n", "-np", "--np", "--ntasks"), "total")
_VALUED = {
    "pals": _TOTAL
    | dict.fromkeys(("--ppn", "-ppn", "-N"), "per-node")
    | dict.fromkeys(("--cpu-bind",), "cpu-bind")
    | dict.fromkeys(("-d", "--depth"), "depth")
    | dict.fromkeys(("--hostfile",), "hostfile")
    | dict.fromkeys(("--hosts", "-hosts", "--hostlist"), "hosts")
    | {"--env": "env", "-env": "env", "--wdir": "chdir", "-wdir": "chdir"}
    | dict.fromkeys(("--gpu-bind", "--mem-bind", "--pmi", "--umask", "--timeout", "--genvlist", "-J"), "other"),
    "hydra": _TOTAL
    | dict.fromkeys(("-ppn", "--ppn", "-perhost"), "per-node")
    | dict.fromkeys(("-f", "-hostfile", "-machinefile", "--hostfile"), "hostfile")
    | dict.fromkeys(("-hosts", "-host", "--hosts"), "hosts")
    | {"-genv": "genv", "-env": "genv", "-wdir": "chdir", "-bind-to": "bind"}
    | dict.fromkeys(("-map-by", "-genvlist", "-launcher", "-bootstrap", "-iface", "-rmk"), "other"),
    "openmpi": _TOTAL
    | {"-c": "total", "-N": "per-node", "--npernode": "per-node", "-npernode": "per-node"}
    | dict.fromkeys(("--map-by", "-map-by"), "map-by")
    | dict.fromkeys(("--bind-to", "-bind-to"), "bind")
    | dict.fromkeys(("--host", "-host", "-H"), "hosts")
    | dict.fromkeys(("--hostfile", "-hostfile", "--machinefile", "-machinefile"), "hostfile")
    | {"-x": "export", "--mca": "mca", "-mca": "mca", "--wdir": "chdir", "-wdir": "chdir"}
    | dict.fromkeys(("--rank-by", "--cpus-per-proc", "--prefix", "--output-filename"), "other"),
    "ibrun": {"-n": "total", "-np": "total", "-o": "offset"},
}
_FLAGS = {
    "pals": ("--envall", "--envnone", "--no-vni", "--line-buffer", "-l", "--label", "-v", "--verbose", "--no-abort"),
    "hydra": ("-l", "-genvall", "-genvnone", "-verbose", "-prepend-rank", "-print-rank-map"),
    "openmpi": (
        "--report-bindings --oversubscribe --nooversubscribe --allow-run-as-root --display-map --tag-output -v"
        " --bynode --display-allocation -q --quiet --use-hwthread-cpus"
    ).split(),
    "ibrun": (),
}


def launch(cluster: Cluster, client: Client) -> int | None:
    """Start one process per rank, as the dialect of this command would."""
    dialect = cluster.world["mpi"][client.argv[0]]
    reads = "ibrun" if client.argv[0] == "ibrun" else dialect
    flags = dict.fromkeys(_FLAGS[reads], "flag")
    try:
        given = options.read(client.argv[1:], _VALUED[reads], flags, pairs=("genv", "mca"))
    except options.UnknownOption as error:
        raise Refusal(str(error)) from None
    if not given.command:
        raise Refusal("no executable was specified")
    if given.command[0] == "task_affinity":
        given.command.pop(0)
    hosts = _hosts(cluster, client, given)
    counts = _ibrun_counts(cluster, client, given) if reads == "ibrun" else _counts(cluster, given, hosts, dialect)
    cluster.start(client, _tasks(cluster, client, given, dialect, hosts, counts))
    return None


def _hosts(cluster: Cluster, client: Client, given: options.Options) -> list[int]:
    names: list[str] = []
    if listed := given.get("hostfile"):
        names = [line.split()[0] for line in _text(cluster, client, listed).splitlines() if line.split()]
    elif listed := given.get("hosts"):
        names = [item.split(":")[0] for item in listed.split(",")]
    if not names:
        return list(range(len(cluster.nodes)))
    found = []
    for name in dict.fromkeys(names):
        index = cluster.node_named(name, client.node)
        if index is None:
            raise Refusal(f"host {name} is not one of this job's")
        if index not in found:
            found.append(index)
    return found


def _text(cluster: Cluster, client: Client, path: str) -> str:
    try:
        with open(f"/proc/{client.pid}/cwd/{path}" if not path.startswith("/") else path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise Refusal(f"{path}: {error.strerror}") from None


def _counts(cluster: Cluster, given: options.Options, hosts: list[int], dialect: str) -> list[int]:
    total, per_node = given.number("total"), given.number("per-node")
    if ratio := re.match(r"ppr:(\d+):node", given.get("map-by") or ""):
        per_node = int(ratio[1])
    slots: int | None = cluster.world["alloc"]["tasks_per_node"]
    if dialect == "openmpi" and per_node is None and slots is not None and (given.get("map-by") or "slot") == "slot":
        per_node = slots
        if total is not None and total > slots * len(hosts):
            raise Refusal(f"There are not enough slots available in the system to satisfy the {total} slots")
    if per_node is None:
        per_node = -(-total // len(hosts)) if total else 1
        if dialect == "hydra" and total:
            per_node = slots or per_node
    total = total if total is not None else per_node * len(hosts)
    if total > per_node * len(hosts):
        raise Refusal(f"{total} processes do not fit on {len(hosts)} nodes with {per_node} on each")
    counts = []
    for _ in hosts:
        counts.append(min(per_node, total))
        total -= counts[-1]
    return counts


def _ibrun_counts(cluster: Cluster, client: Client, given: options.Options) -> list[int]:
    """ibrun fills the slots the job asked for, node by node."""
    own = client.env.get("TACC_TASKS_PER_NODE", "")
    slots = int(own) if own.isdecimal() else (cluster.world["alloc"]["tasks_per_node"] or 1)
    offset = given.number("offset") or 0
    total = given.number("total") or slots * len(cluster.nodes) - offset
    if total + offset > slots * len(cluster.nodes):
        raise Refusal(f"{total} tasks asked for, and the job has {slots * len(cluster.nodes) - offset} slots left")
    counts = []
    for _ in cluster.nodes:
        free = max(0, slots - offset)
        offset = max(0, offset - slots)
        counts.append(min(free, total))
        total -= counts[-1]
    return counts


def _tasks(
    cluster: Cluster, client: Client, given: options.Options, dialect: str, hosts: list[int], counts: list[int]
) -> list[Task]:
    total, rank, tasks = sum(counts), 0, []
    names = {item.partition("=")[0]: item.partition("=")[2] for item in given.all("env") + given.all("genv")}
    for place, count in enumerate(counts):
        for local in range(count):
            base = _base(cluster, client, given, dialect, hosts[place])
            own = _identity(dialect, rank, total, local, count, place)
            name = cluster.nodes[hosts[place]]["name"]
            tasks.append(
                Task(
                    node=hosts[place],
                    argv=given.command,
                    env={**base, **names, **own, "HOSTNAME": name},
                    cwd=given.get("chdir") or client.cwd,
                    command=client.argv[0],
                    rank=rank,
                    local=local,
                    size=total,
                    cores=bound(cluster, given, dialect, local, count),
                )
            )
            rank += 1
    return tasks


def _base(cluster: Cluster, client: Client, given: options.Options, dialect: str, node: int) -> dict[str, str]:
    """What a process inherits. Open MPI's remote daemons inherit only where Slurm starts them (through srun)."""
    if given.has("flag") and "--envnone" in client.argv:
        return {"PATH": client.env.get("PATH", "")}
    env = dict(client.env)
    if dialect == "openmpi" and node != client.node and cluster.world["scheduler"] != "slurm":
        env = dict(cluster.world["login_env"])
    for item in given.all("export"):
        name, equals, value = item.partition("=")
        if equals:
            env[name] = value
        elif name in client.env:
            env[name] = client.env[name]
    return env


def _identity(dialect: str, rank: int, size: int, local: int, local_size: int, node: int) -> dict[str, str]:
    pmi = {"PMI_RANK": rank, "PMI_SIZE": size}
    tables: dict[str, dict[str, int]] = {
        "pals": pmi
        | {"PMI_LOCAL_RANK": local, "PMI_LOCAL_SIZE": local_size, "PALS_RANKID": rank, "PALS_NODEID": node}
        | {"PALS_LOCAL_RANKID": local, "PALS_LOCAL_SIZE": local_size, "PALS_DEPTH": 1, "PMIX_RANK": rank},
        "hydra": pmi | {"MPI_LOCALRANKID": local, "MPI_LOCALNRANKS": local_size},
        "mvapich": pmi
        | {"MV2_COMM_WORLD_RANK": rank, "MV2_COMM_WORLD_SIZE": size, "MV2_COMM_WORLD_LOCAL_RANK": local}
        | {"MV2_COMM_WORLD_LOCAL_SIZE": local_size},
        "openmpi": {
            "OMPI_COMM_WORLD_RANK": rank,
            "OMPI_COMM_WORLD_SIZE": size,
            "OMPI_COMM_WORLD_LOCAL_RANK": local,
            "OMPI_COMM_WORLD_LOCAL_SIZE": local_size,
            "OMPI_COMM_WORLD_NODE_RANK": local,
            "PMIX_RANK": rank,
        },
    }
    return {name: str(value) for name, value in tables[dialect].items()}
