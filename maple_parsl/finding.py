"""Finding: something a check has to say about a launch, and the edits that mend it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Severity = Literal["error", "warning", "note"]


class Edit(BaseModel):
    """A change of the script's text: lines ``first`` to ``last`` (from 1, both included) become ``text``.

    Attributes:
        text: the new lines, joined by line breaks; empty deletes the lines.
        insert: put ``text`` in front of line ``first`` and keep that line; ``last`` is then without meaning.
        safe: the change cannot alter what the user asked for, so ``--fix`` may apply it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    first: int
    last: int
    text: str
    insert: bool = False
    safe: bool = False


class Finding(BaseModel):
    """One fault or doubt.

    Attributes:
        rule: stable identifier of the check.
        fault_class: class of the fault, such as ``QUEUE_LIMIT`` (JSON key ``class``).
        severity: an error will not run as meant; a warning may not; a note informs.
        line, column: place in the script, from 1. Absent: no single place.
        evidence: the fact or text it rests on, with its source.
        fix: what to change, in words. edits: the same as changes of the text, where it can be said exactly.
    """

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    rule: str
    fault_class: str = Field(alias="class")
    severity: Severity
    message: str
    line: int | None = None
    column: int | None = None
    evidence: str | None = None
    fix: str | None = None
    edits: tuple[Edit, ...] = ()
