"""Synthetic data with something to learn, made sample by sample.

Sample number n of a task depends on the seed and n alone.  So the position in the data is one number, a
resumed run sees just the samples it would have seen, and the replicas see what one process would have seen.
"""

from __future__ import annotations

import abc

import torch
from torch import Generator, Tensor

VOCABULARY = 32
LENGTH = 24
"""Tokens per sequence."""
SENTENCES = 4
CLASSES = 8
COLOURS = 3
PIXELS = 16
"""Height and width of an image."""
MASKED = 6
"""Masked tokens per sequence: as many in each, so that each sample weighs the same in the loss."""
IGNORED = -100
"""The target that cross entropy leaves out."""


class Task(abc.ABC):
    """A source of (input, target) pairs."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.prepare(Generator().manual_seed(seed))

    def batch(self, first: int, count: int) -> tuple[Tensor, Tensor]:
        """Samples ``first`` to ``first + count - 1``, stacked along a new first dimension, on the CPU."""
        pairs = [self.sample(self._generator(number)) for number in range(first, first + count)]
        return torch.stack([pair[0] for pair in pairs]), torch.stack([pair[1] for pair in pairs])

    def _generator(self, number: int) -> Generator:
        """The source of randomness of one sample; the odd factor keeps neighbours and seeds apart."""
        return Generator().manual_seed((self.seed * 1_000_003 + number + 1) * 2_654_435_761 % 2**63)

    @abc.abstractmethod
    def prepare(self, generator: Generator) -> None:
        """Draws the structure that all samples share."""

    @abc.abstractmethod
    def sample(self, generator: Generator) -> tuple[Tensor, Tensor]:
        """One (input, target) pair."""


class NextToken(Task):
    """Sequences where each token mostly fixes the next: input and target [time], the target one ahead.

    Nine times in ten the next token is a fixed function of the last, else it is drawn at random, so the
    loss can fall from ln 32 = 3.5 to about 0.7.
    """

    def prepare(self, generator: Generator) -> None:
        """Draws the fixed function, a permutation of the vocabulary."""
        self.successor: list[int] = torch.randperm(VOCABULARY, generator=generator).tolist()

    def sample(self, generator: Generator) -> tuple[Tensor, Tensor]:
        """A walk from a random token."""
        drawn: list[int] = torch.randint(VOCABULARY, (LENGTH + 1,), generator=generator).tolist()
        jump: list[bool] = (torch.rand(LENGTH + 1, generator=generator) < 0.1).tolist()
        tokens = [drawn[0]]
        for index in range(1, LENGTH + 1):
            tokens.append(drawn[index] if jump[index] else self.successor[tokens[-1]])
        walk = torch.tensor(tokens)
        return walk[:-1], walk[1:]


class MaskedToken(Task):
    """One of four sentences with some tokens masked: input and target [time].

    The place of a masked token leaves four choices (1.4 nats), the tokens around it one.
    """

    def prepare(self, generator: Generator) -> None:
        """Draws the sentences."""
        self.sentences = torch.randint(VOCABULARY, (SENTENCES, LENGTH), generator=generator)

    def sample(self, generator: Generator) -> tuple[Tensor, Tensor]:
        """A sentence; its masked tokens are the targets."""
        sentence = self.sentences[int(torch.randint(SENTENCES, (1,), generator=generator))]
        places = torch.randperm(LENGTH, generator=generator)[:MASKED]
        target = torch.full_like(sentence, IGNORED)
        target[places] = sentence[places]
        return sentence.index_fill(0, places, VOCABULARY), target


class Classes(Task):
    """Noisy images of eight kinds: input [colours, pixels, pixels], target the kind, a scalar."""

    def prepare(self, generator: Generator) -> None:
        """Draws a colour and a coarse pattern for each kind; the colour alone is learnt fast."""
        coarse = torch.randn(CLASSES, COLOURS, 4, 4, generator=generator)
        coarse += torch.randn(CLASSES, COLOURS, 1, 1, generator=generator)
        self.patterns = coarse.repeat_interleave(PIXELS // 4, 2).repeat_interleave(PIXELS // 4, 3)

    def sample(self, generator: Generator) -> tuple[Tensor, Tensor]:
        """A pattern under noise of the same strength."""
        kind = torch.randint(CLASSES, (), generator=generator)
        noise = torch.randn(COLOURS, PIXELS, PIXELS, generator=generator)
        return self.patterns[int(kind)] + noise, kind


class Shapes(Task):
    """A coloured rectangle on noise: [colours, pixels, pixels], target [1, pixels, pixels], 1 inside."""

    def prepare(self, generator: Generator) -> None:
        """Draws the colour."""
        self.colour = 1.5 * torch.randn(COLOURS, 1, 1, generator=generator).sign()

    def sample(self, generator: Generator) -> tuple[Tensor, Tensor]:
        """A rectangle of 4 to 11 pixels each way."""
        height, width = torch.randint(4, 12, (2,), generator=generator).tolist()
        top = int(torch.randint(PIXELS - height + 1, (1,), generator=generator))
        left = int(torch.randint(PIXELS - width + 1, (1,), generator=generator))
        mask = torch.zeros(1, PIXELS, PIXELS)
        mask[:, top : top + height, left : left + width] = 1.0
        noise = torch.randn(COLOURS, PIXELS, PIXELS, generator=generator)
        return noise + self.colour * mask, mask
