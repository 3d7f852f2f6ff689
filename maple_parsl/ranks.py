"""Rank map: who runs where, in blocks of equal nodes, so that its size does not grow with the job."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maple_parsl.plan import Plan


@dataclass(frozen=True)
class Place:
    """One process: global rank, node index, local rank, device index on the node, cores, NUMA node."""

    rank: int
    node: int
    local_rank: int
    device: int
    cores: str | None
    numa: int | None


@dataclass(frozen=True)
class RankMap:
    """Ranks in node-major order: rank = node x devices + local rank.

    Attributes:
        nodes, per_node, world_size: counts.
        devices, cores, numa: per local rank, the same on every node.
        device_type, backend, rank_source: torch device type, collective backend, where RANK comes from.
    """

    nodes: int
    per_node: int
    world_size: int
    devices: tuple[int, ...]
    cores: tuple[str | None, ...]
    numa: tuple[int | None, ...]
    device_type: str
    backend: str
    rank_source: str

    @classmethod
    def of(cls, plan: Plan) -> RankMap:
        """The map a plan will produce."""
        launch = plan.launch
        source = launch.rank[0] if launch.mode == "device" else f"{plan.template} ({plan.shape.nodes} nodes)"
        return cls(
            nodes=plan.shape.nodes,
            per_node=plan.shape.devices,
            world_size=plan.shape.world_size,
            devices=plan.placement.device,
            cores=plan.placement.cores,
            numa=plan.placement.numa,
            device_type=plan.torch_device,
            backend=plan.backend,
            rank_source=source,
        )

    def __getitem__(self, rank: int) -> Place:
        if not 0 <= rank < self.world_size:
            raise IndexError(f"rank {rank} of a world of {self.world_size}")
        node, local = divmod(rank, self.per_node)
        return Place(rank, node, local, self.devices[local], self.cores[local], self.numa[local])

    def __len__(self) -> int:
        return self.world_size

    def __iter__(self) -> Iterator[Place]:
        return (self[rank] for rank in range(self.world_size))

    def to_dict(self) -> dict[str, Any]:
        """JSON form: the block, not one entry per rank."""
        return asdict(self)
