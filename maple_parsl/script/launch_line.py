"""The launcher's command alone, for a job script of one's own: it rests on nothing else that Maple writes."""

from __future__ import annotations

from collections.abc import Iterator

from maple_parsl.errors import RequestError
from maple_parsl.plan import Plan
from maple_parsl.shell import Option, Rooted, Spread, Var, Word, line, quote

_JOB = {"slurm": "SLURM_JOB_ID", "pbs": "PBS_JOBID", "none": ""}


def tree(plan: Plan) -> str:
    """Launcher, container, framework and program on one line, for reading."""
    return line((*plan.launch.launcher, *plan.launch.container, *plan.launch.framework, *plan.launch.program))


def launch_line(plan: Plan) -> str:
    """The lines that start the plan's program: where rank 0 listens, then the launcher's command.

    What each process must know of itself is derived in the process, from the variables of the launcher.

    Raises:
        RequestError: the launch needs more than a command (the mini-app, or a file of hosts).
    """
    launch = plan.launch
    if plan.miniapp:
        raise RequestError("a launch line starts a program of yours: state it with --script")
    if launch.hostfile:
        raise RequestError(
            f"the template {plan.template} reads the nodes from a file that the script writes first; take the whole"
            " script with maple plan --script-only"
        )
    command = (*launch.container, *launch.framework, *launch.program)
    rows = [*_rendezvous(plan), *_folders(plan, command)]
    if launch.mode == "first" or launch.dialect == "local":
        return "\n".join([*rows, line((*launch.launcher, *command))])
    inner = "; ".join([*_own(plan), f"exec {line(command)}"])
    return "\n".join([*rows, f"{line(launch.launcher)} bash -c {quote(inner)}"])


def _rendezvous(plan: Plan) -> Iterator[str]:
    yield f"export MASTER_ADDR={plan.rendezvous.expression}"
    if plan.rendezvous.suffix:
        yield f"MASTER_ADDR=${{MASTER_ADDR%%.*}}{quote(plan.rendezvous.suffix)}"
    if job := _JOB[plan.scheduler]:
        number = f"{job}%%[!0-9]*"  # PBS: 12[3].server
        yield f"MAPLE_NUMBER=${{{number}}}; export MASTER_PORT=$((20000 + MAPLE_NUMBER % 12000))"
    else:
        yield "export MASTER_PORT=$((20000 + $$ % 12000))"


def _folders(plan: Plan, command: tuple[Word, ...]) -> Iterator[str]:
    """Folders of a run that the command names: here, the one the script is started in."""
    meanings = {
        "MAPLE_RUN_DIR": "$PWD",
        "MAPLE_WORK_DIR": "$PWD",
        "MAPLE_RUN_BIND": "$PWD:$PWD",
        "MAPLE_WORK_BIND": "$PWD:$PWD",
        "MAPLE_JOB_ID": f"${_JOB[plan.scheduler]}" if _JOB[plan.scheduler] else "$$",
    }
    for name in dict.fromkeys(filter(None, map(_named, command))):
        if name in meanings:
            yield f'export {name}="{meanings[name]}"'


def _named(word: Word) -> str | None:
    match word:
        case Var():
            return word.var
        case Option():
            return word.var
        case Rooted():
            return word.root
        case Spread():
            return word.array
        case _:
            return None


def _own(plan: Plan) -> Iterator[str]:
    """A process's own rank, local rank or node rank, from the first of the launcher's variables that is set."""
    launch, shape = plan.launch, plan.shape
    rank = _first(launch.rank)
    if launch.mode == "node":
        yield f"export NODE_RANK={_first((*launch.node_rank, *launch.rank))}"
        return
    local = _first(launch.local_rank) if launch.local_rank else f"$(({rank} % {shape.tasks_per_node}))"
    world = shape.nodes * shape.tasks_per_node
    yield f"export RANK={rank} LOCAL_RANK={'0' if launch.one_device else local} WORLD_SIZE={world}"
    yield f"export LOCAL_WORLD_SIZE={shape.tasks_per_node}"


def _first(names: tuple[str, ...]) -> str:
    text = ""
    for name in reversed(names):
        text = f"${{{name}:-{text}}}" if text else f"${{{name}}}"
    return text
