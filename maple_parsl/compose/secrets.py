"""Secrets by name or from a private file: their values are in no plan, script, command line or record."""

from __future__ import annotations

from maple_parsl.compose.context import Context, stated
from maple_parsl.plan import Step
from maple_parsl.shell import path, word


def steps(context: Context) -> list[Step]:
    """Lines that read each secret in the job, or make sure that it is there."""
    request, scheduler = context.request, context.site.scheduler.kind
    made = []
    for name, file in request.secrets.items():
        if name in request.env:
            context.problems.append(f"{name} is stated both as a variable and as a secret; leave one out")
        if file:
            made.append(Step(line=f"{name}=$(cat -- {word(path(file))}) && export {name}", origin=stated()))
            continue
        if scheduler == "pbs":
            context.problems.append(
                f"secret {name}: PBS hands a job none of your variables, and shows those it is given to everyone; put"
                f" the value into a file that only you can read: --secret {name}=FILE"
            )
        # Slurm gives a job the variables of the shell that submits it.
        made.append(
            Step(line=f"printenv {name} >/dev/null", origin=stated(f"the secret {name} comes with the environment"))
        )
    for option in request.directives:
        if request.secrets and option.startswith("--export") and "ALL" not in option:
            context.problems.append(f"{option} keeps your variables from the job, so a secret by name is not there")
    return made


def inputs(context: Context) -> list[Step]:
    """Lines that make sure, on the first node, that what the program reads is there."""
    return [
        Step(line=f"ls -d -- {word(path(file))} >/dev/null", origin=stated("an input must be there before the launch"))
        for file in context.request.inputs
    ]
