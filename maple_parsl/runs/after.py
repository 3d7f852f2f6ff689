"""Jobs that wait for other runs: the dependency in the scheduler's own words."""

from __future__ import annotations

from collections.abc import Sequence

from maple_parsl.errors import RequestError
from maple_parsl.plan import Directive, Origin, Plan
from maple_parsl.runs.run import Run
from maple_parsl.runs.store import Store


def dependent(plan: Plan, jobs: Sequence[str], kind: str, why: str) -> Plan:
    """The plan as a job that waits for others.

    Args:
        jobs: their ids. kind: ``afterok`` (they succeeded) or ``afterany`` (they ended).

    Raises:
        RequestError: there is no scheduler to wait in, or PBS is to wait for one element of an array.
    """
    if not jobs:
        return plan
    if plan.scheduler == "none":
        raise RequestError(f"{plan.site} has no scheduler, so nothing can wait there; wait for the run instead")
    if plan.scheduler == "pbs" and (single := [job for job in jobs if "[" in job and "[]" not in job]):
        raise RequestError(f"PBS waits for whole arrays, not for one element of one ({single[0]})")
    start = "--dependency=" if plan.scheduler == "slurm" else "-W depend="
    condition = f"{kind}:{':'.join(jobs)}"
    kept = list(plan.directives)
    for index, directive in enumerate(kept):
        if directive.option.startswith(start):  # all conditions stand in one option
            kept[index] = directive.model_copy(update={"option": f"{directive.option},{condition}"})
            return plan.model_copy(update={"directives": tuple(kept)})
    option = Directive(option=f"{start}{condition}", origin=Origin(layer="stated", why=why))
    return plan.model_copy(update={"directives": (*kept, option)})


def after(plan: Plan, store: Store, succeeded: Sequence[str], ended: Sequence[str]) -> Plan:
    """The plan as a job that waits for runs, named by their ids or the beginnings of them.

    Raises:
        UnknownNameError: there is no such run. RequestError: a run has no job, or is of another site.
    """
    for kind, names, what in (("afterok", succeeded, "succeeded"), ("afterany", ended, "ended")):
        jobs = [_job(plan, Run.open(name, store)) for name in names]
        plan = dependent(plan, jobs, kind, f"starts when {', '.join(names)} has {what}")
    return plan


def _job(plan: Plan, run: Run) -> str:
    if run.summary.site != plan.site or run.summary.scheduler != plan.scheduler:
        raise RequestError(f"run {run.id} is at {run.summary.site}; a job at {plan.site} cannot wait for it")
    if run.summary.here or (job_id := run.job_id) is None:
        raise RequestError(f"run {run.id} has no job that another could wait for")
    return job_id
