"""The one interface to language models: messages and a JSON schema in, text of that schema out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from maple_parsl.errors import InferenceError

__all__ = ["Answer", "Backend", "InferenceError", "Message"]

Message = Mapping[str, str]


@dataclass(frozen=True)
class Answer:
    """What a model answered. ``read``, ``written``: tokens, where they are known. ``route``: who was asked."""

    text: str
    model: str
    read: int = 0
    written: int = 0
    route: tuple[str, ...] = ()


class Backend(Protocol):
    """Something that answers."""

    @property
    def model(self) -> str:
        """The model's name, for traces."""
        ...

    def answer(self, messages: Sequence[Message], schema: Mapping[str, Any]) -> Answer:
        """Answer with JSON of the schema.

        Raises:
            InferenceError: no answer within the limits.
        """
        ...
