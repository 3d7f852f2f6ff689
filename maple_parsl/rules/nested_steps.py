"""Job steps inside job steps, and steps side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.rules import parts
from maple_parsl.rules.base import Found, Rule, Subject
from maple_parsl.script.model import Launch
from maple_parsl.script.rankmap import LaunchRanks

_DRIVER = re.compile(
    r"driver|orchestrat|workflow|pipeline|manager|master|controller|scheduler|sweep|submit|parsl|dask|libensemble"
    r"|optimas|snakemake|nextflow|reframe|balsam",
    re.I,
)
_HEAD = "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=4\n"


def _shares(launch: Launch) -> bool:
    overlap = launch.environment.get("SLURM_OVERLAP")
    return bool(launch.option("overlap") or (overlap and overlap.value.text not in ("0", "")))


def _inside(subject: Subject) -> Iterator[Found]:
    for outer in subject.script.all_launches:
        if outer.launcher != "srun":
            continue
        for child in outer.children:
            inner = next((p for p in child.all if p.launcher in ("srun", "mpirun", "mpiexec")), None)
            if inner is None or inner.context == "remote" or _shares(inner) or outer.option("pty"):
                continue
            if inner.launcher == "srun":
                what = "the outer step holds the resources, so the inner one waits for them for ever"
            elif parts.number(outer, "ntasks") == 1:
                what = "inside a step it sees the resources of that step only"
            else:
                what = "every task of the step starts all processes again"
            yield Found(
                f"{inner.launcher} inside a step that srun started: {what}",
                inner.place,
                severity="warning" if inner.launcher != "srun" and parts.number(outer, "ntasks") == 1 else None,
                fix="leave out the outer srun, or give the inner one --overlap"
                if inner.launcher == "srun"
                else f"leave out srun, or {inner.launcher}",
            )


def _driver(subject: Subject) -> Iterator[Found]:
    for ranks in subject.launches:
        launch = ranks.launch
        if launch.launcher != "srun" or ranks.framework or _shares(launch) or parts.number(launch, "ntasks") != 1:
            continue
        name = next((t for w in launch.leaf.program[1:4] if (t := w.value.text or "").endswith(".py")), "")
        module = next((w.value.text or "" for w in launch.leaf.program[2:3]), "")
        row = subject.lines[launch.place.line - 1] if launch.place.line <= len(subject.lines) else ""
        if _DRIVER.search(name) or _DRIVER.search(module) or re.search(r"#.*\bsrun\b", row):
            yield Found(
                "a step of one task starts what looks like a driver program: if that calls srun itself, its steps wait"
                " for the resources this one holds",
                launch.place,
                fix="start the driver without srun, or give the inner srun --overlap (or export SLURM_OVERLAP=1)",
            )


def _part(ranks: LaunchRanks) -> bool:
    """A step on several nodes that says how large it is may be a part of the job."""
    return (ranks.nodes or 1) > 1 and any(ranks.launch.option(n) for n in ("nodes", "ntasks"))


def _side_by_side(subject: Subject) -> Iterator[Found]:
    if subject.script.scheduler != "slurm":
        return
    rows = [r for r in subject.launches if r.launch.launcher == "srun" and r.launch.command.background]
    rows = [r for r in rows if not parts.is_tool(r.launch)]
    if len(rows) < 2 and not any(r.launch.command.loop for r in rows):
        return
    for ranks in rows:
        launch = ranks.launch
        placed = any(launch.option(n) for n in ("exact", "exclusive", "overlap", "nodelist", "relative", "jobid"))
        if placed or _shares(launch) or "SLURM_EXACT" in launch.environment or _part(ranks):
            continue
        yield Found(
            "steps run side by side, but each takes all of the job's memory and devices on its nodes: the second waits"
            " until the first has ended",
            launch.place,
            fix="--exact with --gpus-per-task (or --gpus) and --mem for each step",
        )
        return


RULES = (
    Rule(
        id="step-inside-step", fault_class="NESTED_STEP", severity="error",
        title="a launcher inside a step of srun",
        why="Since Slurm 20.11 a step owns its resources; a step started inside it waits for them. mpirun inside a step"
        " is started once per task.",
        source="https://slurm.schedmd.com/srun.html (--overlap, --exact)",
        fix="One launcher, or --overlap.",
        bad=_HEAD + "srun bash -c 'srun python train.py'\n", good=_HEAD + "bash -c 'srun python train.py'\n",
        check=_inside,
    ),
    Rule(
        id="driver-inside-step", fault_class="NESTED_STEP", severity="note",
        title="a driver program inside a step",
        why="A program that calls srun must not hold the resources of a step itself.",
        source="https://github.com/llnl/smith/issues/688",
        fix="Start it without srun.",
        bad=_HEAD + "srun -n1 python driver.py\n", good=_HEAD + "python driver.py\n", check=_driver,
    ),
    Rule(
        id="steps-side-by-side", fault_class="NESTED_STEP", severity="warning",
        title="steps in the background that take everything",
        why="Without --exact a step gets all memory and GPUs of its nodes, so steps meant to run together run one after"
        " the other.",
        source="https://slurm.schedmd.com/srun.html (--exact)",
        fix="--exact and the resources of each step.",
        bad=_HEAD + "srun -n1 python a.py &\nsrun -n1 python b.py &\nwait\n",
        good=_HEAD + "srun -n1 --exact python a.py &\nsrun -n1 --exact python b.py &\nwait\n", check=_side_by_side,
    ),
)  # fmt: skip
