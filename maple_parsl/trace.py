"""Trace: what each agent was given, what it decided, and how long it took. JSON, for people and programs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Step:
    """One step of one agent.

    Attributes:
        agent: extraction, retrieval, verification or correction. round: of the bounded loop, from 1.
        inputs: what it was given. decision: what it concluded. spans: the text its values were read from.
        model: that answered; ``none`` where rules did. tokens: read and written. seconds: wall time.
        route: the endpoints that were asked for the answer, and what came of it.
    """

    agent: str
    round: int = 1
    inputs: dict[str, Any] = field(default_factory=dict)
    decision: dict[str, Any] = field(default_factory=dict)
    spans: dict[str, Any] = field(default_factory=dict)
    model: str = "none"
    tokens: dict[str, int] = field(default_factory=dict)
    route: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass
class Trace:
    """The steps of one request, in order."""

    steps: list[Step] = field(default_factory=list)

    @contextmanager
    def step(self, agent: str, round: int = 1, **inputs: Any) -> Iterator[Step]:
        """A step that is timed and kept, also where it fails."""
        made = Step(agent, round, inputs)
        self.steps.append(made)
        started = time.perf_counter()
        try:
            yield made
        except Exception as error:
            made.decision.setdefault("failed", f"{type(error).__name__}: {error}")
            raise
        finally:
            made.seconds = round_seconds(time.perf_counter() - started)

    def to_dict(self) -> list[dict[str, Any]]:
        return [asdict(step) for step in self.steps]


def round_seconds(seconds: float) -> float:
    """Seconds to the microsecond."""
    return int(seconds * 1e6) / 1e6
