"""Reading: what a request in words states, each value with the text it was read from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

FIELDS = (
    "model",
    "paradigm",
    "framework",
    "site",
    "nodes",
    "gpus_per_node",
    "walltime_min",
    "account",
    "queue",
    "script",
    "args",
    "precision",
)
MORE = ("name", "conda", "venv", "container", "port", "tp", "pp", "dp", "zero_stage", "whole_gpus", "gpus_total")
REQUIRED = ("site", "nodes", "account", "walltime_min", "script")
Basis = Literal["stated", "follows", "model"]


@dataclass(frozen=True, slots=True)
class Value:
    """One value.

    Attributes:
        start, end: the text it was read from, or that it follows from.
        confidence: 0 to 1.
        basis: ``stated`` in these words; ``follows`` from what was stated and a site's facts; proposed by a
            language ``model`` and found in the words.
        why: where it follows from.
    """

    value: Any
    start: int
    end: int
    confidence: float = 1.0
    basis: Basis = "stated"
    why: str = ""


@dataclass(frozen=True, slots=True)
class Issue:
    """What is wrong, or doubtful: ``fault_class`` is that of the same finding in a script; text, remedy, place."""

    fault_class: str
    message: str
    fix: str = ""
    start: int = 0
    end: int = 0

    def to_dict(self) -> dict[str, Any]:
        made: dict[str, Any] = {"class": self.fault_class, "message": self.message}
        if self.fix:
            made["fix"] = self.fix
        return {**made, "span": [self.start, self.end]} if self.end else made


@dataclass(frozen=True, slots=True)
class Reading:
    """What the words state. An absent field was not stated and is not guessed.

    Attributes:
        values: by field name (``FIELDS`` and ``MORE``).
        missing: fields that a launch needs and nobody stated. warnings, errors: see :class:`Issue`.
        intent: ``launch``, or ``diagnose`` where a failure is described.
    """

    words: str
    values: dict[str, Value] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    warnings: tuple[Issue, ...] = ()
    errors: tuple[Issue, ...] = ()
    intent: Literal["launch", "diagnose"] = "launch"

    def get(self, name: str) -> Any:
        """The value of a field; None where it is absent."""
        found = self.values.get(name)
        return None if found is None else found.value

    def with_value(self, name: str, value: Value) -> Reading:
        """The same reading with one more value, which then is missing no longer."""
        missing = tuple(each for each in self.missing if each != name)
        return replace(self, values={**self.values, name: value}, missing=missing)

    def to_dict(self) -> dict[str, Any]:
        """JSON: every field of ``FIELDS`` (absent = null), what else was stated, spans, and what is to be said."""
        more = {name: self.get(name) for name in MORE if name in self.values}
        spans = {
            name: {
                "start": value.start,
                "end": value.end,
                "text": self.words[value.start : value.end],
                "confidence": value.confidence,
                "basis": value.basis,
                **({"why": value.why} if value.why else {}),
            }
            for name, value in self.values.items()
        }
        return {
            **{name: self.get(name) for name in FIELDS},
            **more,
            "intent": self.intent,
            "missing": list(self.missing),
            "warnings": [issue.to_dict() for issue in self.warnings],
            "errors": [issue.to_dict() for issue in self.errors],
            "spans": spans,
        }
