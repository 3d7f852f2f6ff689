"""What is measured: ways from a case to a script. Each takes a case and returns a script, or raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from maple_parsl.benchmark.cases import BenchCase
from maple_parsl.errors import ConfigurationError, MapleError

if TYPE_CHECKING:
    from maple_parsl.agents import Part


class Asked(MapleError):
    """The words led to questions instead of a plan."""


class Answer(Protocol):
    """A way from a request to a launch script."""

    name: str

    def __call__(self, case: BenchCase) -> str:
        """The script for a case; raises a MapleError where there is none."""
        ...


class Structured:
    """From the fields of the request: what the planner does when the words were understood."""

    name = "fields"

    def __call__(self, case: BenchCase) -> str:
        import maple_parsl
        from maple_parsl.request import Request

        return maple_parsl.plan(request=Request.of(**case.fields)).script


class Words:
    """From the words of the request.

    Args:
        model: also with the language model that the agents' settings choose; ConfigurationError where they choose none.
        without: an agent to leave out.
    """

    def __init__(self, *, model: bool = False, without: Part | None = None) -> None:
        from maple_parsl.settings import agent

        chosen = agent("extraction").model
        if model and chosen.backend == "none":
            raise ConfigurationError("no language model is chosen; MAPLE_MODEL=transformers:PATH, or openai:NAME@URL")
        self.name = f"words, with {chosen.name.rstrip('/').rpartition('/')[2]}" if model else "words"
        self._without: tuple[Part, ...] = () if model else ("model",)
        if without is not None:
            self.name += f", without {without}"
            self._without += (without,)

    def __call__(self, case: BenchCase) -> str:
        import maple_parsl

        answer = maple_parsl.ask(case.text, without=self._without)
        if answer.plan is None:
            raise Asked(f"asked instead of planned: {answer}")
        return answer.plan.script


def ablations() -> tuple[Answer, ...]:
    """Words with one agent left out each, and last the fields: as if all words had been understood."""
    return (
        Words(without="retrieval"),
        Words(without="verification"),
        Words(without="correction"),
        Structured(),
    )


def answer_named(name: str, *, model: bool = False) -> Answer:
    """``fields``, or ``words``, with a language model too where one is wanted."""
    return Structured() if name == "fields" else Words(model=model)
