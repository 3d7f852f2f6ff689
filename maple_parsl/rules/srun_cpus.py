"""Cores per task, which srun does not take over from sbatch."""

from __future__ import annotations

from collections.abc import Iterator

from maple_parsl.rules import parts
from maple_parsl.rules.base import Found, Rule, Subject

_HEAD = "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=4\n#SBATCH --cpus-per-task=12\n"
_LINE = "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK"


def _check(subject: Subject) -> Iterator[Found]:
    script = subject.script
    directive = script.directive("--cpus-per-task") if script.scheduler == "slurm" else None
    if directive is None or directive.number == 1:
        return
    first = True
    for ranks in subject.launches:
        launch = ranks.launch
        if launch.launcher != "srun" or parts.is_tool(launch):
            continue
        if (
            launch.option("cpus_per_task")
            or launch.option("cpus_per_gpu")
            or "SRUN_CPUS_PER_TASK" in launch.environment
        ):
            continue
        yield Found(
            f"srun does not take over --cpus-per-task={directive.value} of sbatch: each task gets one core",
            launch.place,
            fix=f"{_LINE}, or srun --cpus-per-task=$SLURM_CPUS_PER_TASK",
            edits=parts.insert_before(subject, launch.place, _LINE, safe=True) if first else (),
        )
        first = False


RULES = (
    Rule(
        id="cpus-per-task-not-inherited",
        fault_class="SRUN_CPUS_INHERIT",
        severity="warning",
        title="cores per task are given to sbatch only",
        why="Since Slurm 22.05 srun no longer reads SLURM_CPUS_PER_TASK; a step then has one core per task, and data"
        " loading or OpenMP crawl.",
        source="https://slurm.schedmd.com/sbatch.html (--cpus-per-task, note on srun)",
        fix=f"{_LINE}, or give srun the option.",
        bad=_HEAD + "srun python train.py\n",
        good=_HEAD + _LINE + "\nsrun python train.py\n",
        check=_check,
    ),
)
