"""Finding: something a check has to say about a launch."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Finding(BaseModel):
    """One fault or doubt.

    Attributes:
        rule: stable identifier of the check.
        fault_class: class of the fault, such as ``QUEUE_LIMIT`` (JSON key ``class``).
        severity: an error will not run as meant; a warning may not; a note informs.
        line, column: place in the script, from 1. Absent: no single place.
        evidence: the fact or text it rests on, with its source.
        fix: what to change, in words.
    """

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    rule: str
    fault_class: str = Field(alias="class")
    severity: Literal["error", "warning", "note"]
    message: str
    line: int | None = None
    column: int | None = None
    evidence: str | None = None
    fix: str | None = None
