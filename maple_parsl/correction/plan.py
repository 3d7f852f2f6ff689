"""Correcting a plan: typed changes of its request, composed and checked again, at most three times."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from maple_parsl.correction.remedies import Fault, Remedy, remedy, unfit
from maple_parsl.errors import ComposeError, RequestError
from maple_parsl.plan import Plan

if TYPE_CHECKING:
    from maple_parsl.diagnosis import Diagnosis
    from maple_parsl.finding import Finding
    from maple_parsl.request import Request
    from maple_parsl.site import Site

ROUNDS = 3
_FLAGS = {"env": "--env", "directives": "--directive", "launcher_args": "--launcher-arg"}


class Change(BaseModel):
    """One field of the request. ``stated``: the user had said ``before`` (None: nothing was said)."""

    model_config = ConfigDict(frozen=True)

    field: str
    before: str | None
    after: str | None
    why: str
    stated: bool
    flag: str


class PlanCorrection(BaseModel):
    """A corrected plan.

    Attributes:
        plan: the new one; None where none could be made that passes.
        changes: of the request, in order. cannot: why the rest could not be put right. rounds: how many were needed.
    """

    model_config = ConfigDict(frozen=True)

    plan: Plan | None
    changes: tuple[Change, ...] = ()
    cannot: tuple[str, ...] = ()
    rounds: int = 0

    @property
    def correct(self) -> bool:
        """There is a plan that passes, and nothing is left."""
        return self.plan is not None and not self.cannot

    @property
    def changed_statements(self) -> tuple[Change, ...]:
        """What the user had stated and is another now."""
        return tuple(change for change in self.changes if change.stated)

    @property
    def flags(self) -> str:
        """The options of ``maple run`` that make the same changes."""
        return " ".join(change.flag for change in self.changes if change.flag)


@dataclass
class _Work:
    """The request as it is now, why each of its fields changed, and what could not be put right."""

    request: Request
    why: dict[str, str] = field(default_factory=dict)
    cannot: list[str] = field(default_factory=list)

    def apply(self, made: Remedy) -> bool:
        """Take a remedy; False where nothing changed."""
        if not made.fields:
            self.cannot.append(made.why)
            return False
        before = self.request
        self.request = before.model_copy(update=dict(made.fields))
        self.why |= {name: made.why for name in made.fields if getattr(before, name) != getattr(self.request, name)}
        return self.request != before

    def changes(self, original: Request) -> tuple[Change, ...]:
        """What is another now than it was at first."""
        made = []
        for name, why in self.why.items():
            old, new = getattr(original, name), getattr(self.request, name)
            stated = name in original.model_fields_set and old not in (None, (), {}, False)
            if old != new:
                before = _shown(old) if stated else None
                made.append(
                    Change(field=name, before=before, after=_shown(new), why=why, stated=stated, flag=_flag(name, new))
                )
        return tuple(made)


def correct_plan(
    start: Plan | Request,
    site: Site,
    composing: Callable[[Request], Plan],
    found: Iterable[Finding] | Diagnosis | None = None,
) -> PlanCorrection:
    """Correct a plan, or a request that makes none. Nothing is submitted.

    Args:
        composing: makes the plan of a request at the site, and raises ComposeError.
        found: findings or a diagnosis of its run; None: what a check of the plan finds.
    """
    original = start.request if isinstance(start, Plan) else start
    work = _Work(original)
    faults = _faults(found)
    plan: Plan | None = None
    rounds = 0
    while rounds < ROUNDS:
        rounds += 1
        changed = [work.apply(remedy(work.request, site, fault)) for fault in faults]
        if faults and not any(changed):
            break  # the reasons are noted; another round would find the same
        try:
            plan = composing(work.request)
        except (ComposeError, RequestError) as error:
            plan, faults = None, []
            made = unfit(work.request, site)
            if made is None or not work.apply(made):
                work.cannot += error.problems if isinstance(error, ComposeError) else (str(error),)
                break
            continue
        faults = _errors(plan, site)
        if not faults:
            break
    else:
        work.cannot += [fault.words for fault in faults]
        if plan is None:
            work.cannot.append(f"after {ROUNDS} rounds of changes the request still does not fit {site.title}")
    passing = plan if not work.cannot else None
    cannot = tuple(dict.fromkeys(work.cannot))
    return PlanCorrection(plan=passing, changes=work.changes(original), cannot=cannot, rounds=rounds)


def _faults(found: Iterable[Finding] | Diagnosis | None) -> list[Fault]:
    if found is None:
        return []
    causes = getattr(found, "causes", None)
    if causes is None:
        findings: Iterable[Any] = found
        return [Fault(f.fault_class, f.message, f.evidence or "", advice=f.fix or "") for f in findings]
    first = causes[:1]  # what followed from it goes with it
    advice = {id(c): c.edits[0].words if c.edits else "" for c in first}
    return [Fault(c.fault_class, c.explanation, c.evidence.text, c.where, advice[id(c)]) for c in first]


def _errors(plan: Plan, site: Site) -> list[Fault]:
    from maple_parsl.checking.report import inspect

    report = inspect(plan.script, site)
    own = [(f, "") for f in plan.findings]
    found = [*own, *((f, report.row(f)) for f in report.findings)]
    return [Fault(f.fault_class, f.message, row, advice=f.fix or "") for f, row in found if f.severity == "error"]


def _shown(value: object) -> str | None:
    if value is None or value in ((), {}):
        return None
    if isinstance(value, dict):
        return " ".join(f"{name}={text}" for name, text in value.items())
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _flag(field: str, value: object) -> str:
    """As on the command line; empty where the change is an option left out."""
    if value is True:
        return f"--{field.replace('_', '-')}"
    if value is None:
        return ""
    if field in _FLAGS:
        rows = [f"{n}={v}" for n, v in value.items()] if isinstance(value, dict) else list(value)  # type: ignore[call-overload]
        return " ".join(f"{_FLAGS[field]} {shlex.quote(row)}" for row in rows)
    return f"--{field.replace('_', '-')} {shlex.quote(str(value))}"
