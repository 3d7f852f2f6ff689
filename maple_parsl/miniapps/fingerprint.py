"""Hashes of parameters: do ranks agree where they must, and hold other shards where they should?"""

from __future__ import annotations

import ctypes
import hashlib
from dataclasses import dataclass

import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, Replicate


@dataclass(frozen=True)
class ParameterReport:
    """The parameters of one rank's model or pipeline stage, gathered and as held."""

    digests: dict[str, str]
    """SHA-256 of each parameter: gathered where it is sharded, this rank's own copy where it is not."""
    elements: int
    """Elements of all parameters, gathered."""
    local_elements: int
    """Elements that this rank holds."""
    local_sha256: str
    """Hash of just what this rank holds."""

    @property
    def sha256(self) -> str:
        """One hash for all of `digests`, whatever their order."""
        return combine(self.digests)


def combine(digests: dict[str, str]) -> str:
    """One hash for many named ones, whatever their order."""
    lines = (f"{name} {digest}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def report_parameters(module: nn.Module) -> ParameterReport:
    """Hashes the parameters of ``module``; DTensors are gathered, so this is a collective call."""
    whole: dict[str, str] = {}
    held: dict[str, str] = {}
    elements = local_elements = 0
    for name, parameter in module.named_parameters():
        tensor = parameter.detach()
        sharded = isinstance(tensor, DTensor)
        gathered = gather(tensor) if sharded else tensor
        local = tensor.to_local() if sharded else tensor
        whole[name] = digest(gathered)
        held[name] = digest(local)
        elements += gathered.numel()
        local_elements += local.numel()
    return ParameterReport(whole, elements, local_elements, combine(held))


def gather(tensor: DTensor) -> Tensor:
    """The whole of a sharded tensor, undoing one cut after the other: last the one made first."""
    placements = list(tensor.placements)
    for index in range(len(placements) - 1):
        placements[index] = Replicate()
        tensor = tensor.redistribute(placements=placements)
    return tensor.full_tensor()


def digest(tensor: Tensor) -> str:
    """SHA-256 of the bytes of a plain tensor, without the help of numpy (torch may come without)."""
    flat = tensor.detach().cpu().contiguous()
    size = flat.numel() * flat.element_size()
    return hashlib.sha256(ctypes.string_at(flat.data_ptr(), size) if size else b"").hexdigest()


def job_sha256(report: ParameterReport) -> str:
    """The hash of the whole model, put together from all ranks' parts (a collective call).

    It does not depend on how the model was cut: the same parameters give the same hash under ddp and pp.
    Where ranks that should agree do not, rank order decides, and their own hashes tell.
    """
    parts: list[dict[str, str]] = [{} for _ in range(dist.get_world_size())]
    dist.all_gather_object(parts, report.digests)
    return combine({name: value for part in parts for name, value in part.items()})
