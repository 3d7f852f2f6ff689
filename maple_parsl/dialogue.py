"""Questions: what a person has to say before a launch can be planned; short, numbered, with choices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maple_parsl.errors import RequestError

if TYPE_CHECKING:
    from maple_parsl.extraction import Issue, Reading
    from maple_parsl.site import Site

_ASKED = {
    "site": "At which site?",
    "nodes": "On how many nodes?",
    "account": "Which account (project, allocation) is charged?",
    "walltime_min": "For how long at most?",
    "script": "Which program (a path), with which arguments?",
    "queue": "Which queue?",
    "paradigm": "Which parallel paradigm?",
    "model": "Which model?",
}


@dataclass(frozen=True)
class Question:
    """One question. ``why`` it is asked; ``choices`` that are possible, where they are known."""

    field: str
    text: str
    why: str = ""
    choices: tuple[str, ...] = ()

    def __str__(self) -> str:
        why = f" ({self.why})" if self.why else ""
        return f"{self.text}{why}" + (f" One of: {', '.join(self.choices)}." if self.choices else "")


class UnansweredError(RequestError):
    """A request in words that is no plan yet.

    Attributes:
        questions: what is missing or doubtful, in the order to answer it. reading: what was understood.
    """

    def __init__(self, questions: Sequence[Question], understood: Mapping[str, Any], notes: Iterable[str] = ()) -> None:
        self.questions, self.understood = tuple(questions), dict(understood)
        rows = [f"  {number}. {question}" for number, question in enumerate(self.questions, 1)]
        head = "this request is not complete yet:" if rows else "this request cannot be planned"
        known = ", ".join(f"{name} {value}" for name, value in self.understood.items())
        tail = [f"understood: {known}"] if known else []
        super().__init__("\n".join([head, *rows, *(f"  note: {note}" for note in notes), *tail]))

    def to_dict(self) -> dict[str, Any]:
        asked = [
            {"field": q.field, "question": q.text, "why": q.why, "choices": list(q.choices)} for q in self.questions
        ]
        return {"questions": asked, "understood": self.understood}


def questions(reading: Reading, site: Site | None, sites: Sequence[str]) -> list[Question]:
    """What has to be answered: contradictions and impossible values first, then what is missing."""
    made = [_about(issue) for issue in reading.errors]
    for name in reading.missing:
        choices: tuple[str, ...] = ()
        why = "nobody but you can know it" if name == "account" else ""
        if name == "site":
            choices = tuple(sites)
        elif name == "account" and site is not None and site.scheduler.account_hint:
            why = site.scheduler.account_hint
        elif name == "walltime_min":
            why = next((issue.message for issue in reading.warnings if "time limit" in issue.message), why)
        elif name == "script":
            why = "or one of Maple's own small models: gpt, bert, vit, resnet, unet, with a paradigm"
        made.append(Question(name, _ASKED[name], why, choices))
    return made


def problem_question(problem: str) -> Question:
    """A reason why request and site do not go together, as a question."""
    return Question("request", problem)


def _about(issue: Issue) -> Question:
    return Question(issue.fault_class, f"{issue.message}.", issue.fix)
