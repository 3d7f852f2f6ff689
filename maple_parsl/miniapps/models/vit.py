"""vit: a transformer over the patches of an image."""
# mypy: disallow-subclassing-any=False

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..data import CLASSES, COLOURS, PIXELS
from .layers import Chain, TransformerBlock
from .size import ModelSize

PATCH = 4
"""Height and width of a patch in pixels."""


class PatchEmbedding(nn.Module):
    """Images [batch, colours, pixels, pixels] to one vector per patch, [batch, patches, width]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(COLOURS * PATCH**2, width)
        self.position = nn.Parameter(torch.randn((PIXELS // PATCH) ** 2, width) * 0.1)

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        """Projects each patch and adds its learned position."""
        rows = images.unflatten(3, (-1, PATCH)).unflatten(2, (-1, PATCH))
        patches = rows.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)
        return (self.project(patches) + self.position,)


class PoolingHead(nn.Module):
    """[batch, patches, width] to logits [batch, classes]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Logits of the mean over the patches."""
        return (self.out(self.norm(x).mean(1)),)


def build(size: ModelSize) -> Chain:
    """Images [batch, colours, pixels, pixels] to logits [batch, classes]."""
    layers = [TransformerBlock(size.width, size.head_width, causal=False) for _ in range(size.depth)]
    return Chain([PatchEmbedding(size.width), *layers, PoolingHead(size.width)])
