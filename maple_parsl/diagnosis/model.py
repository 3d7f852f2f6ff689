"""The result of a diagnosis."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Where = Literal["script", "program", "machine", "submission"]


class Evidence(BaseModel):
    """A line of a log.

    Attributes:
        line: number in the file, from 1.
        text: the line without control codes, cut where it is very long.
        frame: where the program was, as ``file:line in function``, when the line ends a traceback.
    """

    model_config = ConfigDict(frozen=True)

    file: str
    line: int
    text: str
    frame: str | None = None


class Edit(BaseModel):
    """A change that removes the cause: in words and, where it is plain, as text of the batch script."""

    model_config = ConfigDict(frozen=True)

    words: str
    line: int | None = None
    old: str | None = None
    new: str | None = None


class Cause(BaseModel):
    """Something that made the launch fail.

    Attributes:
        fault_class: class of the failure (JSON key ``class``); script_classes: those of script checks it maps to.
        confidence: 0 to 1.
        alternatives: classes the same line could also mean.
        signature: id in ``failures.toml``; "exception" or "error-line" for what no signature knows.
    """

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    fault_class: str = Field(alias="class")
    script_classes: tuple[str, ...] = ()
    where: Where
    rank: int | None = None
    host: str | None = None
    evidence: Evidence
    explanation: str
    edits: tuple[Edit, ...] = ()
    confidence: float = Field(ge=0, le=1)
    alternatives: tuple[str, ...] = ()
    signature: str
    source: str | None = None


class Diagnosis(BaseModel):
    """What the logs say.

    Attributes:
        causes: first cause first. Empty: nothing was recognised.
        consequences: what followed from it, such as the errors of processes that lost a partner.
        suspicious: where no cause was recognised, the lines a person should look at first.
        notices: what could not be read.
    """

    model_config = ConfigDict(frozen=True)

    causes: tuple[Cause, ...] = ()
    consequences: tuple[Cause, ...] = ()
    suspicious: tuple[Evidence, ...] = ()
    notices: tuple[str, ...] = ()
