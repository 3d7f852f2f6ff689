"""What is measured: ways from a case to a script. Each takes a case and returns a script, or raises."""

from __future__ import annotations

from typing import Any, Protocol

from maple_parsl.benchmark.cases import BenchCase
from maple_parsl.errors import ConfigurationError, MapleError


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

        return maple_parsl.plan(**_three(case.fields)).script


class Words:
    """From the words of the request, without a language model."""

    name = "words"

    def __init__(self) -> None:
        import maple_parsl

        ask = getattr(maple_parsl, "ask", None)
        if ask is None:
            raise ConfigurationError("this version of Maple reads no requests in words; use --from fields")
        self._ask = ask

    def __call__(self, case: BenchCase) -> str:
        answer = self._ask(case.text)
        plan = getattr(answer, "plan", answer)
        script = getattr(plan, "script", None)
        if not isinstance(script, str):
            questions = getattr(answer, "questions", None) or getattr(answer, "errors", None) or answer
            raise Asked(f"asked instead of planned: {questions}")
        return script


def _three(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields as a request, so that nothing is positional."""
    from maple_parsl.request import Request

    return {"request": Request.of(**fields)}


def answer_named(name: str) -> Answer:
    """``fields`` or ``words``; ConfigurationError where this version has no such way."""
    return Structured() if name == "fields" else Words()
