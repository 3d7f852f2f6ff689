"""What a check says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "note", "fault"]


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
        name: what was looked at. verdict: a fault stands in the way of a launch; a note may.
        saw: what was found. remedy: what to do; empty when nothing is to be done.
    """

    name: str
    verdict: Verdict
    saw: str
    remedy: str = ""


@dataclass(frozen=True)
class Asked:
    """What the person named, where the checks would otherwise take what is configured.

    Attributes:
        site: its name. account, queue: to be charged and used there.
        environment: fields of the request's environment (modules, venv, conda, python, container).
    """

    site: str | None = None
    account: str | None = None
    queue: str | None = None
    environment: tuple[tuple[str, object], ...] = ()
