"""tp: the layers themselves are cut over the ranks, which all see the same samples.

Transformers (gpt, bert, vit): in each layer the query, key, value and first perceptron matrices are cut by
column, the attention output and second perceptron matrices by row (DTensor, `parallelize_module`).
Convolutions (resnet, unet): in each residual pair the first convolution is cut by output channel, the norm
after it by group, the second convolution by input channel; the outputs of the second are summed over ranks.
Embeddings, first convolutions, heads, shortcuts and the remaining norms are not cut: each rank holds them
whole and computes the same with them.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_module, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from ..models import Family, build
from ..models.layers import Chain, ConvPair, TransformerBlock
from ..options import Options
from ..world import World
from .base import Trainer
from .data_parallel import plain_step


class TensorTrainer(Trainer):
    """One model cut over all ranks."""

    def __init__(self, options: Options, world: World, family: Family) -> None:
        super().__init__(options, world, family)
        self.chain = self._prepare(build(options.model, options.layout, options.seed))
        shard_layers(self.chain, init_device_mesh(world.device.type, (world.size,), mesh_dim_names=("tp",)))
        self.optimizer = self._adamw()

    def step(self, inputs: Tensor, targets: Tensor) -> Tensor | None:
        """One batch forward, backward and update."""
        return plain_step(self, self.chain, inputs, targets)


def shard_layers(chain: Chain, mesh: DeviceMesh) -> None:
    """Cuts every transformer layer and residual pair of ``chain`` over the one-dimensional ``mesh``."""
    for module in list(chain.modules()):
        if isinstance(module, TransformerBlock):
            plan = {f"attention.{name}": ColwiseParallel() for name in ("q", "k", "v")}
            plan |= {"up": ColwiseParallel(), "attention.out": RowwiseParallel(), "down": RowwiseParallel()}
            parallelize_module(module, mesh, plan)
        elif isinstance(module, ConvPair):
            shard_channels(module, mesh)


def shard_channels(pair: ConvPair, mesh: DeviceMesh) -> None:
    """Cuts a residual pair by channel: between its two convolutions each rank has its own channels.

    Input and output of the pair are whole on every rank.  The gradient of the input is the sum of what the
    ranks' channels contribute, the output of the second convolution likewise.
    """

    def enter(_module: nn.Module, inputs: tuple[Tensor, ...], mesh: DeviceMesh) -> tuple[Tensor, ...]:
        whole = DTensor.from_local(inputs[0], mesh, [Replicate()], run_check=False)
        return (whole.to_local(grad_placements=[Partial()]),)

    def leave(_module: nn.Module, output: Tensor, mesh: DeviceMesh) -> Any:
        return DTensor.from_local(output, mesh, [Partial()], run_check=False).full_tensor()

    distribute_module(pair.conv1, mesh, _sharder(0), input_fn=enter)
    distribute_module(pair.norm1, mesh, _sharder(0))
    distribute_module(pair.conv2, mesh, _sharder(1), output_fn=leave)


def _sharder(dim: int) -> Any:
    """A function that cuts each parameter of a module along ``dim``."""

    def cut(_name: str, module: nn.Module, mesh: DeviceMesh) -> None:
        for name, parameter in list(module.named_parameters(recurse=False)):
            module.register_parameter(name, nn.Parameter(distribute_tensor(parameter, mesh, [Shard(dim)])))

    return cut
