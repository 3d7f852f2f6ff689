"""The configuration files of a small live cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

CLUSTER = "maple"
HEAD = "head"
HEAD_ADDRESS = "10.77.0.1"
MUNGE_SOCKET = "run/munge.sock"


@dataclass(frozen=True)
class BedConfig:
    """What a live testbed looks like.

    `settings` replaces or adds slurm.conf lines (None drops a line). `users` are people that its nodes know beside
    those of this machine: name -> uid.
    """

    nodes: int = 4
    gpus: int = 4
    gpu_type: str = "a100"
    accounting: bool = False
    sockets: int = 2
    cores_per_socket: int = 8
    memory_mb: int = 64_000
    node_prefix: str = "node"
    settings: Mapping[str, str | None] = field(default_factory=dict)
    users: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 1 <= self.nodes <= 200 or not 0 <= self.gpus <= 16:
            raise ValueError("a live testbed has 1 to 200 nodes with 0 to 16 GPUs each")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.node_prefix}{index}" for index in range(1, self.nodes + 1))

    @property
    def hostlist(self) -> str:
        return f"{self.node_prefix}[1-{self.nodes}]"

    def address(self, name: str) -> str:
        return f"10.77.1.{self.names.index(name) + 1}"


def base_settings(prefix: Path, cluster: str) -> dict[str, str | None]:
    """What every testbed's slurm.conf has, live or not."""
    return {
        "ClusterName": cluster,
        "SlurmctldHost": f"{HEAD}({HEAD_ADDRESS})",
        "SlurmUser": "root",
        "SlurmdUser": "root",
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={prefix / MUNGE_SOCKET}",
        "CredType": "cred/munge",
        "StateSaveLocation": str(prefix / "state"),
        "SlurmctldPidFile": str(prefix / "run/slurmctld.pid"),
        "SlurmctldLogFile": str(prefix / "log/slurmctld.log"),
        "SlurmctldDebug": "info",
        "MailProg": "/bin/true",
        "MpiDefault": "none",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core_Memory",
        "SchedulerType": "sched/backfill",
        "EnforcePartLimits": "ALL",
        "AccountingStorageType": "accounting_storage/none",
    }


def live_settings(config: BedConfig, prefix: Path) -> dict[str, str | None]:
    settings = base_settings(prefix, CLUSTER) | {
        "SlurmdPidFile": str(prefix / "run/slurmd.%n.pid"),
        "SlurmdLogFile": str(prefix / "log/slurmd.%n.log"),
        "SlurmdSpoolDir": str(prefix / "spool/%n"),
        "SlurmdDebug": "info",
        # more CPUs and memory than the machine has
        "SlurmdParameters": "config_overrides",
        "JobAcctGatherType": "jobacct_gather/linux",
        "JobAcctGatherFrequency": "task=2",
        "GresTypes": "gpu" if config.gpus else None,
        "PrologFlags": "Alloc",
        "ReturnToService": "2",
        "PriorityType": "priority/multifactor",
        "PriorityWeightQOS": "10000",
        "JobRequeue": "1",
        # quick answers
        "SchedulerParameters": "bf_interval=5,sched_interval=5,batch_sched_delay=0,sched_min_interval=0",
        "KillWait": "5",
        "MinJobAge": "600",
        "InactiveLimit": "0",
        "PreemptType": "preempt/partition_prio",
        "PreemptMode": "REQUEUE",
    }
    if config.accounting:
        settings |= {
            "AccountingStorageType": "accounting_storage/slurmdbd",
            "AccountingStorageHost": HEAD_ADDRESS,
            "AccountingStoragePass": str(prefix / MUNGE_SOCKET),
            "AccountingStorageTRES": "gres/gpu" if config.gpus else None,
            "AccountingStorageEnforce": "associations,limits,qos",
            "PreemptType": "preempt/qos",
        }
    return settings | dict(config.settings)


def lines_of(settings: Mapping[str, str | None]) -> list[str]:
    return [f"{name}={value}" for name, value in settings.items() if value is not None]


def slurm_conf(config: BedConfig, prefix: Path) -> str:
    """slurm.conf of a live testbed: three partitions over all nodes, `high` preempting the others."""
    lines = lines_of(live_settings(config, prefix))
    gres = f" Gres=gpu:{config.gpu_type}:{config.gpus}" if config.gpus else ""
    shape = f"Sockets={config.sockets} CoresPerSocket={config.cores_per_socket} ThreadsPerCore=1"
    lines += [
        f"NodeName={name} NodeHostname={name} NodeAddr={config.address(name)} {shape}"
        f" RealMemory={config.memory_mb}{gres} State=UNKNOWN"
        for name in config.names
    ]
    common = "Nodes=ALL DefMemPerCPU=2000 State=UP"
    lines += [
        f"PartitionName=debug {common} Default=YES MaxTime=00:10:00 DefaultTime=00:05:00 PriorityTier=1",
        f"PartitionName=gpu {common} MaxTime=02:00:00 DefaultTime=00:10:00 PriorityTier=1",
        f"PartitionName=high {common} MaxTime=02:00:00 DefaultTime=00:10:00 PriorityTier=10 PreemptMode=OFF",
    ]
    return "\n".join(lines) + "\n"


def gres_conf(config: BedConfig, prefix: Path) -> str:
    """gres.conf. slurmd sets CUDA_VISIBLE_DEVICES only for device files: each GPU is a link to /dev/null."""
    lines = ["AutoDetect=off"]
    if config.gpus:
        files = prefix / f"dev/nvidia[0-{config.gpus - 1}]"
        lines.append(f"NodeName={config.hostlist} Name=gpu Type={config.gpu_type} File={files}")
    return "\n".join(lines) + "\n"


def hosts(config: BedConfig | None) -> str:
    """/etc/hosts of every machine of the testbed."""
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost", f"{HEAD_ADDRESS} {HEAD}"]
    if config is not None:
        lines += [f"{config.address(name)} {name}" for name in config.names]
    return "\n".join(lines) + "\n"


def accounts(config: BedConfig, prefix: Path) -> dict[str, str]:
    """This machine's passwd and group with the testbed's own people; nothing where it has none."""
    if not config.users:
        return {}
    people = [f"{name}:x:{uid}:{uid}:{name}:{prefix / 'home' / name}:/bin/bash\n" for name, uid in config.users.items()]
    groups = [f"{name}:x:{uid}:\n" for name, uid in config.users.items()]
    return {
        "passwd": Path("/etc/passwd").read_text() + "".join(people),
        "group": Path("/etc/group").read_text() + "".join(groups),
    }
