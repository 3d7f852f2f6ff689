"""What porting a script gives."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from maple_parsl.finding import Finding
from maple_parsl.plan import Plan

Fate = Literal["kept", "replaced", "left"]


class Part(BaseModel):
    """Lines of the old script and what became of them.

    Attributes:
        line: the first one. text: as written. fate: ``kept`` word for word, ``replaced`` by what the target wants, or
            ``left`` out because it cannot be translated. why: in a few words. todo: what to do about it.
    """

    model_config = ConfigDict(frozen=True)

    line: int
    text: str
    fate: Fate
    why: str
    todo: str | None = None


class Ported(BaseModel):
    """A script carried to another site.

    Attributes:
        text: the new script. plan: what it starts. program: program and arguments, word for word.
        parts: every line of the old one and what became of it.
        todo: what cannot be translated and must be looked at, one sentence each.
        findings: what the checks for the target say of the new script.
        source, target: site names; source is None where it was not known.
    """

    model_config = ConfigDict(frozen=True)

    text: str
    plan: Plan
    program: str
    parts: tuple[Part, ...]
    todo: tuple[str, ...]
    findings: tuple[Finding, ...]
    source: str | None
    target: str

    @property
    def correct(self) -> bool:
        """The checks find nothing of error severity."""
        return not any(finding.severity == "error" for finding in self.findings)

    def of(self, fate: Fate) -> tuple[Part, ...]:
        return tuple(part for part in self.parts if part.fate == fate)
