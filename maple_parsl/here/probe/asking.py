"""The commands of a probe: read-only, each with a deadline, each remembered with its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from maple_parsl.here.command import Runner, ask

DEADLINE = 20.0


def _patient(command: Sequence[str]) -> str | None:
    return ask(command, DEADLINE)


@dataclass
class Asker:
    """Runs commands and keeps what they answered.

    Attributes:
        run: how a command is run instead, such as from recorded answers. asked: each command, and whether it answered.
    """

    run: Runner | None = None
    asked: dict[str, bool] = field(default_factory=dict)

    def __call__(self, *words: str) -> str:
        """What the command printed; empty where it is missing, failed or did not answer in time."""
        said = (self.run or _patient)(words)
        self.asked[" ".join(words)] = said is not None
        return said or ""
