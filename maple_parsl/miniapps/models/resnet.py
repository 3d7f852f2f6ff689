"""resnet: residual convolutions that classify an image."""
# mypy: disallow-subclassing-any=False

from __future__ import annotations

from torch import Tensor, nn

from ..data import CLASSES, COLOURS
from .layers import Chain, ConvPair
from .size import ModelSize


class Stem(nn.Module):
    """Images [batch, colours, pixels, pixels] to [batch, width, pixels / 2, pixels / 2]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(COLOURS, width, 3, stride=2, padding=1)

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        """The first convolution."""
        return (self.conv(images),)


class Residual(nn.Module):
    """A `ConvPair` as a block of a chain."""

    def __init__(self, channels_in: int, channels_out: int, groups: int, stride: int) -> None:
        super().__init__()
        self.pair = ConvPair(channels_in, channels_out, groups, stride)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """[batch, channels in, height, width] to [batch, channels out, height / stride, width / stride]."""
        return (self.pair(x),)


class PoolingHead(nn.Module):
    """[batch, channels, height, width] to logits [batch, classes]."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.out = nn.Linear(channels, CLASSES)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Logits of the mean over the image."""
        return (self.out(x.mean((2, 3))),)


def build(size: ModelSize) -> Chain:
    """Images [batch, colours, pixels, pixels] to logits [batch, classes].

    Half-way the image is halved and the channels doubled, as in every resnet.
    """
    half = size.depth // 2
    blocks: list[nn.Module] = [Stem(size.width)]
    for index in range(size.depth):
        channels_in = size.width * (1 if index <= half else 2)
        channels_out = size.width * (1 if index < half else 2)
        blocks.append(Residual(channels_in, channels_out, size.heads, 2 if index == half else 1))
    return Chain([*blocks, PoolingHead(2 * size.width)])
