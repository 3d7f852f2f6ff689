"""bert: a bidirectional transformer that fills in masked tokens."""

from __future__ import annotations

from ..data import LENGTH, VOCABULARY
from .layers import Chain, TokenEmbedding, TokenHead, TransformerBlock
from .size import ModelSize


def build(size: ModelSize) -> Chain:
    """Tokens [batch, time], one more kind of them for the mask, to logits [batch, time, vocabulary]."""
    layers = [TransformerBlock(size.width, size.head_width, causal=False) for _ in range(size.depth)]
    first = TokenEmbedding(VOCABULARY + 1, LENGTH, size.width)
    return Chain([first, *layers, TokenHead(VOCABULARY, size.width)])
