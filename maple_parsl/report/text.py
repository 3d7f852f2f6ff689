"""Text of a run made fit for a page: no controls, no secrets, escaped."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from maple_parsl.plan import Plan
from maple_parsl.rules.secrets import HIDDEN, hide
from maple_parsl.shell import assigned
from maple_parsl.terminal import clean

_SHORTEST = 6  # characters from which on a value is looked for in other texts; shorter ones are everyday words


@dataclass(frozen=True)
class Shown:
    """What may be shown: the values of variables that the user stated may not, wherever they appear."""

    values: tuple[str, ...] = ()

    @classmethod
    def of(cls, plan: Plan) -> Shown:
        """For a plan: the values of variables stated in the request or the user's files."""
        found = [export.value for export in plan.exports if export.origin.layer in ("stated", "configured")]
        found += list((plan.request.env or {}).values())
        return cls(tuple(sorted({value for value in found if len(value) >= _SHORTEST}, key=len, reverse=True)))

    def plain(self, text: str) -> str:
        """Without controls and secrets, not escaped."""
        text = hide(clean(text))
        for value in self.values:
            text = text.replace(value, HIDDEN)
        return text

    def html(self, text: object) -> str:
        """The same, escaped."""
        return escape(self.plain(str(text)))


def without_values(plan: Plan) -> dict[str, str]:
    """Lines of a script that set a variable the user stated, and the same lines without its value."""
    return {
        assigned(export.name, export.value): f"export {export.name}={HIDDEN}"
        for export in plan.exports
        if export.origin.layer in ("stated", "configured")
    }


def moment(seconds: float) -> str:
    """A moment as an HTML time, in UTC."""
    stamp = time.gmtime(seconds)
    machine = time.strftime("%Y-%m-%dT%H:%M:%SZ", stamp)
    return f'<time datetime="{machine}">{time.strftime("%Y-%m-%d %H:%M:%S", stamp)} UTC</time>'


def rows(pairs: Iterable[tuple[str, str]]) -> str:
    """Names and values (HTML already) as a description list; empty values are left out."""
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{value}</dd>" for name, value in pairs if value) + "</dl>"
