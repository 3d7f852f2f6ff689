"""The ways to distribute training."""

from __future__ import annotations

from ..models import FAMILIES
from ..options import Options
from ..world import World
from .base import Trainer

__all__ = ["Trainer", "make_trainer"]


def make_trainer(options: Options, world: World) -> Trainer:
    """The trainer of ``options.paradigm`` (a collective call).  Imports no more than that one needs."""
    from .data_parallel import DdpTrainer, FsdpTrainer
    from .pipeline import PipelineTrainer
    from .tensor import TensorTrainer
    from .zero import ZeroTrainer

    kinds: dict[str, type[Trainer]] = {
        "ddp": DdpTrainer,
        "fsdp": FsdpTrainer,
        "tp": TensorTrainer,
        "pp": PipelineTrainer,
        "3d": PipelineTrainer,
        "zero": ZeroTrainer,
    }
    return kinds[options.paradigm](options, world, FAMILIES[options.model])
