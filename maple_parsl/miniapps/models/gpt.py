"""gpt: a causal transformer that predicts the next token."""

from __future__ import annotations

from ..data import LENGTH, VOCABULARY
from .layers import Chain, TokenEmbedding, TokenHead, TransformerBlock
from .size import ModelSize


def build(size: ModelSize) -> Chain:
    """Tokens [batch, time] to logits [batch, time, vocabulary]."""
    layers = [TransformerBlock(size.width, size.head_width, causal=True) for _ in range(size.depth)]
    return Chain([TokenEmbedding(VOCABULARY, LENGTH, size.width), *layers, TokenHead(VOCABULARY, size.width)])
