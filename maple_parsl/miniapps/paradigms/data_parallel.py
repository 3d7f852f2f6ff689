"""ddp and fsdp: every rank trains the whole model on its own samples."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

from ..models import Family, build
from ..models.layers import Chain, ConvPair, TransformerBlock
from ..options import Options
from ..world import World
from .base import Trainer


class DdpTrainer(Trainer):
    """Replicated parameters; gradients are averaged over the ranks during the backward pass."""

    def __init__(self, options: Options, world: World, family: Family) -> None:
        super().__init__(options, world, family)
        self.replica = world.rank
        self.chain = self._prepare(build(options.model, options.layout, options.seed))
        ids = None if world.device.type == "cpu" else [world.device.index]
        self.parallel = DistributedDataParallel(self.chain, device_ids=ids)
        self.optimizer = self._adamw()

    def step(self, inputs: Tensor, targets: Tensor) -> Tensor | None:
        """One batch forward, backward and update."""
        return plain_step(self, self.parallel, inputs, targets)


class FsdpTrainer(Trainer):
    """FSDP2: each parameter, its gradient and its optimizer state are sharded over all ranks.

    A layer is gathered just for its forward and backward pass, so each layer is a unit of its own.
    """

    def __init__(self, options: Options, world: World, family: Family) -> None:
        super().__init__(options, world, family)
        self.replica = world.rank
        self.chain = build(options.model, options.layout, options.seed).to(world.device)
        mesh = init_device_mesh(world.device.type, (world.size,), mesh_dim_names=("dp",))
        shard_parameters(self.chain, mesh, options.precision, reshard=True)
        self.optimizer = self._adamw()

    def step(self, inputs: Tensor, targets: Tensor) -> Tensor | None:
        """One batch forward, backward and update."""
        return plain_step(self, self.chain, inputs, targets)


def plain_step(trainer: Trainer, model: torch.nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
    """The step of every paradigm in which a rank calls the whole model: returns the detached loss."""
    loss = trainer.family.loss(model(inputs), targets)
    trainer.optimizer.zero_grad()
    loss.backward()
    trainer.optimizer.step()
    return loss.detach()


def shard_parameters(chain: Chain, mesh: DeviceMesh, precision: str, reshard: bool) -> None:
    """Shards the parameters of ``chain`` over the one-dimensional ``mesh`` by FSDP2.

    Each transformer layer and each residual pair is one unit, what is left (embedding, head) another.

    In bf16 the gathered parameters and the arithmetic are bfloat16, the sums of gradients float32.
    ``reshard`` frees the gathered parameters after the forward pass, at the price of a second gathering.
    """
    half = torch.bfloat16 if precision == "bf16" else None
    inner = MixedPrecisionPolicy(param_dtype=half, reduce_dtype=torch.float32)
    outer = MixedPrecisionPolicy(param_dtype=half, reduce_dtype=torch.float32, output_dtype=torch.float32)
    for module in list(chain.modules()):
        if isinstance(module, (TransformerBlock, ConvPair)):
            fully_shard(module, mesh=mesh, mp_policy=inner, reshard_after_forward=reshard)
    fully_shard(chain, mesh=mesh, mp_policy=outer, reshard_after_forward=reshard)
