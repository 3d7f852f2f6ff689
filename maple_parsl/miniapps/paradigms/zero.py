"""zero: DeepSpeed shards the optimizer state (stage 1), the gradients too (2), the parameters too (3)."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import UsageError
from ..fingerprint import ParameterReport, combine, digest
from ..models import Family, build
from ..options import Options
from ..world import World
from .base import Trainer

TAG = "deepspeed"
"""The folder that DeepSpeed makes inside a checkpoint's."""


def require_deepspeed() -> None:
    """Raises `UsageError` where DeepSpeed is not installed; does not import it."""
    if importlib.util.find_spec("deepspeed") is None:
        raise UsageError("--paradigm zero needs DeepSpeed, which is not installed: pip install deepspeed")


class ZeroTrainer(Trainer):
    """Every rank trains the whole model on its own samples, through DeepSpeed's engine."""

    def __init__(self, options: Options, world: World, family: Family) -> None:
        super().__init__(options, world, family)
        self.replica = world.rank
        self.chain = build(options.model, options.layout, options.seed).to(world.device)
        # DeepSpeed guesses the accelerator from installed packages; tell it what MAPLE_DEVICE chose.
        os.environ.setdefault("DS_ACCELERATOR", world.device.type)
        # stdout is for JSON lines; DeepSpeed's log goes for good to the stdout it finds when imported.
        with contextlib.redirect_stdout(sys.stderr):
            self.deepspeed: Any = importlib.import_module("deepspeed")
            if world.device.type == "cpu":
                # Else it compiles its shared memory collectives, for a minute; gloo does without.
                vars(importlib.import_module("deepspeed.ops"))["__compatible_ops__"] = {}
            # torch 2.13 has a new name for a function that DeepSpeed calls at every step.
            warnings.filterwarnings("ignore", message=".*all_gather_into_tensor", category=FutureWarning)
            warnings.filterwarnings("ignore", message=".*reduce_scatter_tensor", category=FutureWarning)
            self.deepspeed.init_distributed(dist_backend=world.backend, dist_init_required=False)
            self.engine, self.optimizer, _, _ = self.deepspeed.initialize(
                model=self.chain, optimizer=self._adamw(), config=self._config()
            )

    def _config(self) -> dict[str, object]:
        return {
            "train_micro_batch_size_per_gpu": self.options.batch_size,
            "gradient_accumulation_steps": 1,
            "zero_optimization": {"stage": self.options.zero_stage},
            "bf16": {"enabled": self.options.precision == "bf16"},
            "zero_allow_untested_optimizer": True,
            "steps_per_print": sys.maxsize,
        }

    def step(self, inputs: Tensor, targets: Tensor) -> Tensor | None:
        """One batch forward, backward and update."""
        if inputs.is_floating_point() and self.options.precision == "bf16":
            inputs = inputs.bfloat16()
        loss = self.family.loss(self.engine(inputs).float(), targets)
        self.engine.backward(loss)
        self.engine.step()
        return loss.detach()

    def parameters(self) -> ParameterReport:
        """Hashes of the parameters that the model computes with; those of stage 3 are gathered one by one."""
        whole: dict[str, str] = {}
        held: dict[str, str] = {}
        elements = local_elements = 0
        for name, parameter in self.chain.named_parameters():
            local = parameter.ds_tensor if hasattr(parameter, "ds_tensor") else parameter
            held[name] = digest(local)
            local_elements += local.numel()
            with self.deepspeed.zero.GatheredParameters([parameter], enabled=hasattr(parameter, "ds_tensor")):
                whole[name] = digest(parameter)
                elements += parameter.numel()
        return ParameterReport(whole, elements, local_elements, combine(held))

    def save(self, folder: Path) -> None:
        """DeepSpeed's own checkpoint, with one file per rank for what is sharded."""
        with contextlib.redirect_stdout(sys.stderr):
            self.engine.save_checkpoint(str(folder), tag=TAG, save_latest=False)

    def load(self, folder: Path) -> None:
        """Reads what `save` wrote."""
        with contextlib.redirect_stdout(sys.stderr):
            path, _ = self.engine.load_checkpoint(str(folder), tag=TAG)
        if path is None:
            raise UsageError(f"DeepSpeed cannot read the checkpoint {folder}")
        torch.distributed.barrier()
