"""What all ways to distribute have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from torch import Tensor
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict

from ..fingerprint import ParameterReport, report_parameters
from ..models import Family
from ..models.layers import Chain
from ..options import Options
from ..world import World

CHECKPOINT_OPTIONS = StateDictOptions(flatten_optimizer_state_dict=True)
"""One key per parameter in the optimizer's part too: pipeline stages then never write the same key."""


class Trainer(ABC):
    """A model spread over the ranks, its optimizer and one training step."""

    chain: Chain
    """This rank's part of the model; its parameters may be sharded."""
    optimizer: torch.optim.Optimizer
    replica = 0
    """Which replica this rank belongs to, of ``options.layout.dp``: it decides the samples the rank sees."""
    scope = "model"
    """What `parameters` reports on, in words: the whole model, or one pipeline stage of it."""

    def __init__(self, options: Options, world: World, family: Family) -> None:
        self.options = options
        self.world = world
        self.family = family

    @abstractmethod
    def step(self, inputs: Tensor, targets: Tensor) -> Tensor | None:
        """Trains on one batch of this replica, on the device.

        Returns the mean loss over that batch, a scalar, or None on a rank that does not see the end of the
        model.
        """

    def parameters(self) -> ParameterReport:
        """Hashes of the parameters (a collective call)."""
        return report_parameters(self.chain)

    def save(self, folder: Path) -> None:
        """Writes model and optimizer to ``folder``, each rank its own part (a collective call)."""
        dcp.save(self._state(), checkpoint_id=str(folder))

    def load(self, folder: Path) -> None:
        """Reads what `save` wrote (a collective call)."""
        state = self._state()
        dcp.load(state, checkpoint_id=str(folder))
        set_state_dict(
            self.chain,
            self.optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
            options=CHECKPOINT_OPTIONS,
        )

    def _state(self) -> dict[str, dict[str, object]]:
        model, optimizer = get_state_dict(self.chain, self.optimizer, options=CHECKPOINT_OPTIONS)
        return {"model": model, "optimizer": optimizer}

    def _prepare(self, chain: Chain) -> Chain:
        """The chain on this rank's device; in bf16 it computes under autocast."""
        if self.options.precision == "bf16":
            chain.autocast = self.world.device.type
        chain.to(self.world.device)
        return chain

    def _adamw(self) -> torch.optim.AdamW:
        """AdamW over this rank's parameters, one by one: sharded and plain ones do not go together."""
        return torch.optim.AdamW(self.chain.parameters(), lr=self.options.lr, foreach=False)
