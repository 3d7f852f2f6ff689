"""pp and 3d: the blocks of the model are dealt out to pipeline stages, each on its own ranks.

In 3d each stage is also cut by layer (tp) and its parameters are sharded over the replicas (dp, FSDP2).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

from ..models import Family, build
from ..models.layers import Chain
from ..options import Options
from ..world import World
from .base import Trainer
from .data_parallel import shard_parameters
from .tensor import shard_layers

SCHEDULES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}


class PipelineTrainer(Trainer):
    """One stage of one replica of the pipeline.

    Ranks are laid out dp x pp x tp, tp innermost: the ranks that talk most are neighbours on one host.
    """

    def __init__(self, options: Options, world: World, family: Family) -> None:
        super().__init__(options, world, family)
        layout = options.layout
        mesh = init_device_mesh(world.device.type, (layout.dp, layout.pp, layout.tp), mesh_dim_names=("dp", "pp", "tp"))
        self.replica = mesh["dp"].get_local_rank()
        index = mesh["pp"].get_local_rank()
        self.is_first = index == 0
        self.is_last = index == layout.pp - 1
        self.scope = f"stage {index} of {layout.pp}"

        chain = build(options.model, layout, options.seed)
        bounds = [len(chain.blocks) * stage // layout.pp for stage in range(layout.pp + 1)]
        example_in = pass_through(chain, 0, bounds[index], self._example())
        example_out = pass_through(chain, bounds[index], bounds[index + 1], example_in)
        chain.keep(bounds[index], bounds[index + 1])

        three_d = options.paradigm == "3d"
        self.chain = chain.to(world.device) if three_d else self._prepare(chain)
        if three_d:
            shard_layers(self.chain, mesh["tp"])
            shard_parameters(self.chain, mesh["dp"], options.precision, reshard=False)
        self.optimizer = self._adamw()
        stage = PipelineStage(
            self.chain,
            index,
            layout.pp,
            world.device,
            input_args=on_device(example_in, world.device),
            output_args=on_device(example_out, world.device),
            group=mesh["pp"].get_group(),
        )
        self.schedule = SCHEDULES[options.schedule](stage, options.microbatches, loss_fn=family.loss)

    def step(self, inputs: Tensor, targets: Tensor) -> Tensor | None:
        """Sends the micro-batches of one batch through the stages and back, then updates this stage."""
        self.optimizer.zero_grad()
        losses: list[Tensor] = []
        arguments = (inputs,) if self.is_first else ()
        if self.is_last:
            self.schedule.step(*arguments, target=targets, losses=losses)
        else:
            self.schedule.step(*arguments)
        self.optimizer.step()
        return torch.stack(losses).detach().mean() if self.is_last else None

    def _example(self) -> tuple[Tensor, ...]:
        """An input of the shape of one micro-batch."""
        inputs, _ = self.family.task(self.options.seed).batch(0, 1)
        size = self.options.batch_size // self.options.microbatches
        return (inputs.expand(size, *inputs.shape[1:]).contiguous(),)


def pass_through(chain: Chain, first: int, end: int, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """What blocks ``first`` to ``end - 1`` make of ``tensors``, for the sake of the shapes."""
    with torch.no_grad():
        for index in range(first, end):
            tensors = chain.blocks[str(index)](*tensors)
    return tensors


def on_device(tensors: tuple[Tensor, ...], device: torch.device) -> tuple[Tensor, ...]:
    """The tensors on ``device``, those of real numbers ready to have gradients sent back for them."""
    return tuple(tensor.to(device).requires_grad_(tensor.is_floating_point()) for tensor in tensors)
