"""`SiteShape`: what decides whether a site's Slurm takes a job, as plain data.

A controller set up from a shape answers `sbatch --test-only` with Slurm's own code and words wherever Slurm
can express the rule. It knows no more about the site than the shape says: its consent shows that a script
agrees with that description of the site, not that the site itself would take the script.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class NodeGroup:
    """Nodes of one kind, named `prefix` and a number from 1 on, padded with zeros to `digits`."""

    name: str
    prefix: str
    count: int
    cores_per_socket: int
    memory_mb: int
    sockets: int = 1
    threads_per_core: int = 1
    gpu_type: str | None = None
    gpus: int = 0  # 0 also where the site has GPUs but does not count them
    features: tuple[str, ...] = ()
    digits: int = 0

    @property
    def hostlist(self) -> str:
        return f"{self.prefix}[{1:0{self.digits}d}-{self.count:0{self.digits}d}]"

    @property
    def gres(self) -> str | None:
        if not self.gpus:
            return None
        return ":".join(["gpu", *([self.gpu_type] if self.gpu_type else []), str(self.gpus)])


@dataclass(frozen=True)
class Bin:
    """The time limit of jobs with this many nodes."""

    min_nodes: int
    max_nodes: int
    max_minutes: int


@dataclass(frozen=True)
class PartitionShape:
    """A partition; None is no limit.

    Attributes:
        groups, qos: names; no QOS means all of them.
        bins: time limits by size; a size in none of them is refused.
        required: as in `SiteShape`, for jobs in this partition.
    """

    name: str
    groups: tuple[str, ...]
    min_nodes: int | None = None
    max_nodes: int | None = None
    max_minutes: int | None = None
    default_minutes: int | None = None
    exclusive: bool = False
    oversubscribe: bool = False
    default: bool = False
    qos: tuple[str, ...] = ()
    bins: tuple[Bin, ...] = ()
    required: tuple[str, ...] = ()


@dataclass(frozen=True)
class QosShape:
    """A QOS and the limits of one job in it; None is no limit."""

    name: str
    min_nodes: int | None = None
    max_nodes: int | None = None
    max_minutes: int | None = None
    max_gpus: int | None = None
    max_jobs: int | None = None  # kept as a fact: it limits a user's jobs, not what one script may ask for
    default: bool = False


@dataclass(frozen=True)
class SiteShape:
    """A site's cluster.

    Attributes:
        required: long options without dashes that every job must state, alternatives with a bar between:
            ("account", "time", "ntasks|ntasks-per-node").
        account_pattern: regular expression that is found in every valid account.
        forbidden: long option without dashes -> why, e.g. {"gres": "this site counts no GPUs"}.
        feature_required: the constraint must name one of these features. None: no constraint is needed.
        core_spec: whether --core-spec (-S) is heeded.
    """

    cluster: str
    groups: tuple[NodeGroup, ...]
    partitions: tuple[PartitionShape, ...]
    qos: tuple[QosShape, ...] = ()
    required: tuple[str, ...] = ()
    account_pattern: str | None = None
    forbidden: Mapping[str, str] = field(default_factory=dict)
    feature_required: tuple[str, ...] | None = None
    core_spec: bool = False

    def __post_init__(self) -> None:
        groups = {group.name for group in self.groups}
        known_qos = {qos.name for qos in self.qos}
        for partition in self.partitions:
            unknown = (set(partition.groups) - groups) | (set(partition.qos) - known_qos)
            if unknown or not partition.groups:
                raise ValueError(f"partition {partition.name}: unknown or missing {sorted(unknown)}")
        if not self.partitions:
            raise ValueError("a site has at least one partition")

    @property
    def node_count(self) -> int:
        return sum(group.count for group in self.groups)
