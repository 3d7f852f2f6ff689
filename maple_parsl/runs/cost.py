"""What a job may cost at most, shown before it is submitted, and the limits on it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from maple_parsl.errors import LimitError, RequestError
from maple_parsl.plan import Plan
from maple_parsl.site import Defaults

ASK_ABOVE = 10.0
"""Node-hours above which a person is asked, unless the site's file of theirs says otherwise."""


@dataclass(frozen=True)
class Cost:
    """The upper bound of a job's cost.

    Attributes:
        node_hours: nodes x walltime; None where no walltime was stated as such.
        charge: node-hours charged per node-hour in this queue; None where unknown. jobs: how many of them.
        capped_at: ``node_hours`` is a limit, below what they could cost.
    """

    account: str | None
    queue: str | None
    nodes: int
    walltime: str | None
    node_hours: float | None
    charge: float | None
    jobs: int = 1
    capped_at: bool = False

    @classmethod
    def of(cls, plan: Plan, jobs: int = 1) -> Cost:
        """The cost of a plan that is run so many times."""
        walltime = str(plan.walltime) if plan.walltime else None
        hours = None if plan.node_hours is None else plan.node_hours * jobs
        return cls(plan.account, plan.queue, plan.shape.nodes, walltime, hours, plan.charge, jobs)

    def capped(self, limit: float | None) -> Cost:
        """The same where a limit stops it, whichever of them runs first."""
        if limit is None or self.node_hours is None or self.node_hours <= limit:
            return self
        return replace(self, node_hours=limit, capped_at=True)

    def __str__(self) -> str:
        where = ", ".join(
            f"{what} {value}" for what, value in (("account", self.account), ("queue", self.queue)) if value
        )
        nodes = f"{self.nodes} node{'s' if self.nodes > 1 else ''}"
        nodes = f"{self.jobs} runs x {nodes}" if self.jobs > 1 else nodes
        if self.node_hours is None:
            amount = f"{nodes} for a time that Maple was not told"
        else:
            stop = ", where a limit stops them:" if self.capped_at else " ="
            amount = f"{nodes} x {self.walltime}{stop} at most {self.node_hours:.2f} node-hours"
        factor = f", charged x {self.charge:g}" if self.charge is not None else ""
        return f"{where or 'no account'}: {amount}{factor}"


def check(
    plan: Plan,
    defaults: Defaults,
    *,
    max_node_hours: float | None = None,
    yes: bool = False,
    ask: Callable[[str], bool] | None = None,
    jobs: int = 1,
    restarts: int = 0,
) -> None:
    """Refuse what is above the limit; have a person confirm what is above the threshold.

    Args:
        max_node_hours: limit of this submission; the lower of it and the site file's counts.
        yes: confirmed already. ask: puts the question to a person; None where nobody is there.
        jobs: how many runs of the plan are asked for. restarts: how often each may be started again; all attempts
            share the limit, and what they may cost together is confirmed.

    Raises:
        LimitError: above the limit, or not confirmed.
        RequestError: ``max_node_hours`` is no amount.
    """
    if plan.scheduler == "none":
        return
    cost = Cost.of(plan, jobs)
    if not restarts:
        confirm(cost, defaults, max_node_hours=max_node_hours, yes=yes, ask=ask)
        return
    confirm(cost, defaults, max_node_hours=max_node_hours, yes=True)
    limit = lowest(max_node_hours, defaults)
    confirm(Cost.of(plan, jobs * (1 + restarts)).capped(limit), defaults, max_node_hours=limit, yes=yes, ask=ask)


def lowest(max_node_hours: float | None, defaults: Defaults) -> float | None:
    """The limit that counts of a submission's and the site file's."""
    return min((limit for limit in (max_node_hours, defaults.max_node_hours) if limit is not None), default=None)


def confirm(
    cost: Cost,
    defaults: Defaults,
    *,
    max_node_hours: float | None = None,
    yes: bool = False,
    ask: Callable[[str], bool] | None = None,
) -> None:
    """As :func:`check`, for a cost that is known already."""
    if max_node_hours is not None and not (math.isfinite(max_node_hours) and max_node_hours >= 0):
        raise RequestError(f"max_node_hours is {max_node_hours}; state a number of node-hours, 0 or more")
    limit = lowest(max_node_hours, defaults)
    if limit is not None and (cost.node_hours is None or cost.node_hours > limit):
        raise LimitError(
            f"{cost}; the limit is {limit:g} node-hours. Nothing was submitted: ask for less, or raise the limit"
        )
    threshold = defaults.ask_above_node_hours if defaults.ask_above_node_hours is not None else ASK_ABOVE
    if yes or (cost.node_hours is not None and cost.node_hours <= threshold):
        return
    if ask is None:
        raise LimitError(
            f"{cost}; above {threshold:g} node-hours this needs a confirmation: --yes, or yes=True."
            " Nothing was submitted"
        )
    if not ask(f"{cost}. Submit?"):
        raise LimitError("not confirmed; nothing was submitted")
