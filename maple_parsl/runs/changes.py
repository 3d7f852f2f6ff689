"""What changed between two plans: the stated values, and the scripts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from maple_parsl.checking.difference import unified
from maple_parsl.plan import Plan


@dataclass(frozen=True)
class Changes:
    """The difference of two plans.

    Attributes:
        stated: per field of the request, what it was and what it is (None: not stated).
        script: a unified diff of the scripts, without what differs from run to run; empty where nothing changed.
    """

    stated: dict[str, tuple[Any, Any]]
    script: str

    def __str__(self) -> str:
        rows = [f"{name}: {_shown(old)} -> {_shown(new)}" for name, (old, new) in self.stated.items()]
        return "\n".join([*rows, *([self.script.rstrip()] if self.script else [])]) or "nothing changed"


def changes(old: Plan, new: Plan) -> Changes:
    """Compare an earlier plan with a new one."""
    before, after = _flat(old.request.model_dump(mode="json")), _flat(new.request.model_dump(mode="json"))
    names = dict.fromkeys((*before, *after))
    stated = {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}
    return Changes(stated, unified(_script(old), _script(new), "script.sh"))


def _script(plan: Plan) -> bytes:
    alone = plan.model_copy(update={"place": None, "link": None, "job_name": "maple", "version": ""})
    return alone.script.encode()


def _flat(value: dict[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, inner in value.items():
        name = f"{before}{key}"
        if isinstance(inner, dict):
            found |= _flat(inner, f"{name}.")
        else:
            found[name] = inner
    return found


def _shown(value: Any) -> str:
    return "(not stated)" if value in (None, [], ()) else str(value)
