"""The schedulers: Slurm, PBS, and a machine without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maple_parsl.schedulers.base import JobInfo, JobState, Scheduler
from maple_parsl.schedulers.environment import submission_environment

if TYPE_CHECKING:
    from maple_parsl.plan import Plan

__all__ = ["JobInfo", "JobState", "Scheduler", "scheduler", "scheduler_of", "submission_environment"]


def scheduler(kind: str, *, clusters: str | None = None) -> Scheduler:
    """The scheduler of that kind: ``slurm``, ``pbs`` or ``none``.

    Args:
        clusters: value for Slurm's ``--clusters``, where several clusters share a login node.
    """
    if kind == "slurm":
        from maple_parsl.schedulers.slurm import Slurm

        return Slurm(clusters)
    if kind == "pbs":
        from maple_parsl.schedulers.pbs import PBS

        return PBS()
    if kind == "none":
        from maple_parsl.schedulers.local import Local

        return Local()
    raise ValueError(f"no scheduler of kind {kind!r}")


def scheduler_of(plan: Plan) -> Scheduler:
    """The scheduler that takes this plan's jobs."""
    return scheduler(plan.scheduler, clusters=clusters_of(plan))


def clusters_of(plan: Plan) -> str | None:
    """The value of the plan's ``--clusters`` directive, if it has one."""
    for directive in plan.directives:
        for start in ("--clusters=", "--clusters ", "--cluster=", "-M "):
            if plan.scheduler == "slurm" and directive.option.startswith(start):
                return directive.option.removeprefix(start).strip().strip("\"'")
    return None
