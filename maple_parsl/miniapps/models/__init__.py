"""The five model families: how to build each, its loss and its data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from .. import data
from ..data import Task
from ..options import Layout
from . import bert, gpt, resnet, unet, vit
from .layers import Chain
from .size import ModelSize


@dataclass(frozen=True)
class Family:
    """One kind of model and what it learns."""

    build: Callable[[ModelSize], Chain]
    loss: Callable[[Tensor, Tensor], Tensor]
    """(output, target) to a scalar: the mean over samples, each with the same weight."""
    task: Callable[[int], Task]
    """The data made from a seed."""


def token_loss(logits: Tensor, target: Tensor) -> Tensor:
    """Cross entropy in nats, logits [batch, time, vocabulary] against tokens [batch, time] but for -100."""
    return functional.cross_entropy(logits.flatten(0, 1), target.flatten())


def class_loss(logits: Tensor, target: Tensor) -> Tensor:
    """Cross entropy in nats, logits [batch, classes] against classes [batch]."""
    return functional.cross_entropy(logits, target)


def pixel_loss(logits: Tensor, target: Tensor) -> Tensor:
    """Binary cross entropy in nats per pixel, both [batch, 1, pixels, pixels]."""
    return functional.binary_cross_entropy_with_logits(logits, target)


FAMILIES = {
    "gpt": Family(gpt.build, token_loss, data.NextToken),
    "bert": Family(bert.build, token_loss, data.MaskedToken),
    "vit": Family(vit.build, class_loss, data.Classes),
    "resnet": Family(resnet.build, class_loss, data.Classes),
    "unet": Family(unet.build, pixel_loss, data.Shapes),
}


def build(model: str, layout: Layout, seed: int) -> Chain:
    """The model on the CPU, with the same parameters on every rank (they depend on the seed alone)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return FAMILIES[model].build(ModelSize.for_layout(layout))
