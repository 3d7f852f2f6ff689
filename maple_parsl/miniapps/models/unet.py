"""unet: convolutions down to a coarse image and up again, with skips, that mark the pixels of a shape."""
# mypy: disallow-subclassing-any=False

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..data import COLOURS
from .layers import Chain, ConvPair
from .size import ModelSize


class Stem(nn.Module):
    """Images [batch, colours, pixels, pixels] to [batch, width, pixels, pixels]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(COLOURS, width, 3, padding=1)

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        """The first convolution."""
        return (self.conv(images),)


class Down(nn.Module):
    """Halves height and width; the input is also kept as a skip, the last of the tensors passed on."""

    def __init__(self, channels_in: int, channels_out: int, groups: int) -> None:
        super().__init__()
        self.pair = ConvPair(channels_in, channels_out, groups, stride=2)

    def forward(self, x: Tensor, *skips: Tensor) -> tuple[Tensor, ...]:
        """[batch, channels in, height, width] to [batch, channels out, height / 2, width / 2]."""
        return (self.pair(x), *skips, x)


class Middle(nn.Module):
    """Works on the coarse image; the skips pass by."""

    def __init__(self, channels: int, groups: int) -> None:
        super().__init__()
        self.pair = ConvPair(channels, channels, groups)

    def forward(self, x: Tensor, *skips: Tensor) -> tuple[Tensor, ...]:
        """[batch, channels, height, width] to the same shape."""
        return (self.pair(x), *skips)


class Up(nn.Module):
    """Doubles height and width and joins the last skip to the channels."""

    def __init__(self, channels_in: int, channels_out: int, groups: int) -> None:
        super().__init__()
        self.pair = ConvPair(channels_in + channels_out, channels_out, groups)

    def forward(self, x: Tensor, *skips: Tensor) -> tuple[Tensor, ...]:
        """[batch, channels in, height, width] to [batch, channels out, 2 * height, 2 * width]."""
        large = functional.interpolate(x, scale_factor=2.0, mode="nearest")
        return (self.pair(torch.cat((large, skips[-1]), 1)), *skips[:-1])


class PixelHead(nn.Module):
    """[batch, channels, pixels, pixels] to one logit per pixel, [batch, 1, pixels, pixels]."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.out = nn.Conv2d(channels, 1, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Whether each pixel belongs to the shape."""
        return (self.out(x),)


def build(size: ModelSize) -> Chain:
    """Images [batch, colours, pixels, pixels] to logits [batch, 1, pixels, pixels]: two levels of skips.

    Half the usual channels per group: this is the one family that works on the image at full size.
    """
    groups, width = size.heads, size.heads * size.head_width // 2
    middle = [Middle(2 * width, groups) for _ in range(max(1, size.depth - 4))]
    return Chain(
        [
            Stem(width),
            Down(width, 2 * width, groups),
            Down(2 * width, 2 * width, groups),
            *middle,
            Up(2 * width, 2 * width, groups),
            Up(2 * width, width, groups),
            PixelHead(width),
        ]
    )
