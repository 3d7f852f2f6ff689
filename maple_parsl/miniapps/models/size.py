"""How large a model is, given how it is to be cut."""

from __future__ import annotations

from dataclasses import dataclass

from ..options import Layout

DEFAULT_HEADS = 4
DEFAULT_DEPTH = 4


@dataclass(frozen=True)
class ModelSize:
    """The three numbers that all families are built from.

    A model must have at least one block per pipeline stage and its heads must divide over the tensor
    parallel ranks.  These programs exist to try launches of any shape (12 devices per host, say), so the
    model grows to fit; for up to 4 stages and 2 or 4 shards all launches train the same model.
    """

    heads: int
    """Attention heads, or groups of channels in the convolutional families."""
    head_width: int
    """Channels per head or group."""
    depth: int
    """Blocks between the first and the last."""

    @property
    def width(self) -> int:
        """Channels of the hidden layers."""
        return self.heads * self.head_width

    @staticmethod
    def for_layout(layout: Layout) -> ModelSize:
        """The size for this split of the ranks."""
        heads = DEFAULT_HEADS if DEFAULT_HEADS % layout.tp == 0 else layout.tp
        return ModelSize(heads, 8, max(DEFAULT_DEPTH, layout.pp))
