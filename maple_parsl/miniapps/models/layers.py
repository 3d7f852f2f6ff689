"""Layers that the model families share.

Every model is a `Chain` of blocks.  A block takes and returns a tuple of tensors, so the chain can be cut
between any two blocks into pipeline stages, skip connections included.
"""
# mypy: disallow-subclassing-any=False

from __future__ import annotations

import contextlib

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.nn import functional


class Chain(nn.Module):
    """Blocks one after the other, keyed by their place in the whole model.

    The keys stay when blocks are taken out, so a parameter has one name in every stage and checkpoint.
    """

    def __init__(self, blocks: list[nn.Module]) -> None:
        super().__init__()
        self.blocks = nn.ModuleDict({str(index): block for index, block in enumerate(blocks)})
        self.autocast: str | None = None
        """Device type on which to compute in bfloat16 (parameters and results stay float32), or None."""

    def forward(self, *tensors: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Runs the blocks; one tensor comes back bare, several as a tuple, as pipeline stages want them."""
        with torch.autocast(self.autocast, torch.bfloat16) if self.autocast else contextlib.nullcontext():
            for block in self.blocks.values():
                tensors = block(*tensors)
        if self.autocast:
            tensors = tuple(tensor.float() for tensor in tensors)
        return tensors[0] if len(tensors) == 1 else tensors

    def keep(self, first: int, end: int) -> None:
        """Drops all blocks but ``first`` to ``end - 1``."""
        for key in list(self.blocks):
            if not first <= int(key) < end:
                del self.blocks[key]


class Attention(nn.Module):
    """Multi-head self-attention, [batch, time, width] to the same shape.

    The number of heads follows from the width of q, k and v, so the layer also computes with the heads of
    one tensor parallel shard alone.
    """

    def __init__(self, width: int, head_width: int, causal: bool) -> None:
        super().__init__()
        self.head_width = head_width
        self.causal = causal
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, width, bias=False)
        self.v = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Mixes information between positions."""
        q, k, v = (self._heads(layer(x)) for layer in (self.q, self.k, self.v))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(mixed.transpose(1, 2).flatten(2))

    def _heads(self, x: Tensor) -> Tensor:
        """[batch, time, heads * head_width] to [batch, heads, time, head_width]."""
        return x.unflatten(2, (-1, self.head_width)).transpose(1, 2)


class TransformerBlock(nn.Module):
    """Pre-norm transformer layer: attention and a two-layer perceptron, each added to its input."""

    def __init__(self, width: int, head_width: int, causal: bool) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, head_width, causal)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """[batch, time, width] to the same shape."""
        x = x + self.attention(self.norm1(x))
        return (x + self.down(functional.gelu(self.up(self.norm2(x)))),)


class TokenEmbedding(nn.Module):
    """Tokens [batch, time] to vectors [batch, time, width], with learned positions."""

    def __init__(self, vocabulary: int, length: int, width: int) -> None:
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(torch.randn(length, width))

    def forward(self, tokens: Tensor) -> tuple[Tensor, ...]:
        """The sum of both embeddings."""
        return (self.token(tokens) + self.position,)


class TokenHead(nn.Module):
    """[batch, time, width] to logits [batch, time, vocabulary]."""

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, vocabulary, bias=False)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Logits of each position.

        The bias is added here since a linear layer returns a view, which FSDP2 warns of in a block's result.
        """
        return (self.out(self.norm(x)) + self.bias,)


def local(parameter: Tensor) -> Tensor:
    """What this rank holds of ``parameter``: its shard of a sharded one, all of a plain one."""
    return parameter.to_local() if isinstance(parameter, DTensor) else parameter


class ChannelConv2d(nn.Conv2d):
    """3 x 3 convolution that keeps height and width and also computes with a shard of its channels.

    torch's own convolution cannot work on weights sharded by channel, so it is given the local shard; the
    sums over ranks are added around it by `paradigms.tensor`.
    """

    def __init__(self, channels_in: int, channels_out: int, stride: int = 1) -> None:
        super().__init__(channels_in, channels_out, 3, stride=stride, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """[batch, channels in, height, width] to [batch, channels out, height / stride, width / stride]."""
        return functional.conv2d(x, local(self.weight), None, self.stride, self.padding)


class ChannelGroupNorm(nn.GroupNorm):
    """Group normalization that also computes with a shard of its groups.

    Groups rather than batch normalization: no statistics cross samples, so neither the number of replicas
    nor that of micro-batches changes the result.
    """

    def forward(self, x: Tensor) -> Tensor:
        """[batch, channels, height, width] to the same shape."""
        weight = local(self.weight)
        groups = self.num_groups * weight.numel() // self.num_channels
        return functional.group_norm(x, groups, weight, local(self.bias), self.eps)


class ConvPair(nn.Module):
    """Two 3 x 3 convolutions with norms and a shortcut around them, the residual block of resnet and unet."""

    def __init__(self, channels_in: int, channels_out: int, groups: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = ChannelConv2d(channels_in, channels_out, stride)
        self.norm1 = ChannelGroupNorm(groups, channels_out)
        self.conv2 = ChannelConv2d(channels_out, channels_out)
        self.norm2 = nn.GroupNorm(groups, channels_out)
        same = channels_in == channels_out and stride == 1
        self.shortcut = nn.Identity() if same else nn.Conv2d(channels_in, channels_out, 1, stride=stride)

    def forward(self, x: Tensor) -> Tensor:
        """[batch, channels in, height, width] to [batch, channels out, height / stride, width / stride]."""
        inner = functional.relu(self.norm1(self.conv1(x)))
        return functional.relu(self.norm2(self.conv2(inner)) + self.shortcut(x))
