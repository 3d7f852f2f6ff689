"""The configuration of a controller that stands in for a whole site, without its machines.

Slurm refuses jobs on nodes that it has never heard from, unless they are `State=CLOUD`: those count as
switched off until a job wants them, so thousands of nodes can be offered that do not exist.
"""

from __future__ import annotations

from pathlib import Path

from .config import base_settings, lines_of
from .shape_lua import cli_filter, job_submit
from .shapes import NodeGroup, PartitionShape, SiteShape


def shape_files(shape: SiteShape, prefix: Path) -> dict[str, str]:
    """File name -> text, for the folder of slurm.conf."""
    return {
        "slurm.conf": _slurm_conf(shape, prefix),
        "gres.conf": _gres_conf(shape),
        "job_submit.lua": job_submit(shape),
        "cli_filter.lua": cli_filter(shape),
    }


def _slurm_conf(shape: SiteShape, prefix: Path) -> str:
    settings = base_settings(prefix, shape.cluster) | {
        "GresTypes": "gpu" if any(group.gpus for group in shape.groups) else None,
        "SuspendProgram": "/bin/true",
        "ResumeProgram": "/bin/true",
        "SuspendTime": "600",
        "ResumeTimeout": "3600",
        "ResumeRate": "0",
        "SlurmctldParameters": "cloud_dns",
        "AllowSpecResourcesUsage": "YES" if shape.core_spec else None,
        "PrivateData": "cloud",  # list nodes that are switched off
        "JobSubmitPlugins": "lua",
        "CliFilterPlugins": "lua",
    }
    lines = lines_of(settings)
    lines += [_node_line(group) for group in shape.groups]
    hostlists = {group.name: group.hostlist for group in shape.groups}
    lines += [_partition_line(partition, hostlists) for partition in shape.partitions]
    return "\n".join(lines) + "\n"


def _node_line(group: NodeGroup) -> str:
    words = [
        f"NodeName={group.hostlist}",
        f"Sockets={group.sockets} CoresPerSocket={group.cores_per_socket}",
        f"ThreadsPerCore={group.threads_per_core}",
        f"RealMemory={group.memory_mb}",
    ]
    if group.gres:
        words.append(f"Gres={group.gres}")
    if group.features:
        words.append(f"Feature={','.join(group.features)}")
    return " ".join([*words, "State=CLOUD"])


def _partition_line(partition: PartitionShape, hostlists: dict[str, str]) -> str:
    words = [f"PartitionName={partition.name} State=UP"]
    words.append("Nodes=" + ",".join(hostlists[name] for name in partition.groups))
    words.append(f"Default={'YES' if partition.default else 'NO'}")
    limits = {
        "MinNodes": partition.min_nodes,
        "MaxNodes": partition.max_nodes,
        "MaxTime": partition.max_minutes,
        "DefaultTime": partition.default_minutes,
    }
    words += lines_of({name: None if value is None else str(value) for name, value in limits.items()})
    if partition.exclusive:
        words.append("OverSubscribe=EXCLUSIVE")
    elif partition.oversubscribe:
        words.append("OverSubscribe=YES")
    return " ".join(words)


def _gres_conf(shape: SiteShape) -> str:
    lines = ["AutoDetect=off"]
    for group in shape.groups:
        if group.gpus:
            kind = f" Type={group.gpu_type}" if group.gpu_type else ""
            lines.append(f"NodeName={group.hostlist} Name=gpu{kind} Count={group.gpus}")
    return "\n".join(lines) + "\n"
