"""Variables of an outer job that an inner one inherits."""

from __future__ import annotations

from collections.abc import Iterator

from maple_parsl.finding import Edit
from maple_parsl.rules.asking import alone, commands, effective, option, submitted, texts
from maple_parsl.rules.base import Family, Found, Subject

_SIZES = frozenset(
    "SLURM_NTASKS SLURM_NPROCS SLURM_NNODES SLURM_JOB_NUM_NODES SLURM_JOB_NODELIST SLURM_NODELIST SLURM_PROCID SLURM_JOB_ID"
    " SLURM_JOBID SLURM_LOCALID SLURM_NODEID SLURM_NTASKS_PER_NODE SLURM_TASKS_PER_NODE SLURM_STEP_ID".split()
)


def _submission_inside(subject: Subject) -> Iterator[Found]:
    script = subject.script
    if not submitted(subject) or script.scheduler != "slurm" or not script.launches:
        return
    cleared = any(a.how == "unset" and a.name.startswith("SLURM") for a in script.assignments)
    for command in commands(subject, "sbatch"):
        words = texts(command)
        given = option(words, "--export")
        if cleared or (given is not None and given.upper().startswith(("NONE", "NIL"))):
            continue
        export = script.directive("--export")
        if export is not None and (export.value or "").upper() == "NONE":
            continue
        inside = command.context == "task"
        yield Found(
            "sbatch within a job hands this job's SLURM_ variables and environment on to the new one",
            command.place,
            severity=None if inside or given else "note",
            fix="Submit with sbatch --export=NONE, or unset the SLURM_ variables first.",
        )
        return


def _within_step(subject: Subject) -> Iterator[Found]:
    for command in commands(subject, "srun", "mpiexec", "mpirun"):
        words = [w.rpartition("/")[2] for w in texts(command)]
        found = next((w for w in words[1:] if w in ("sbatch", "qsub")), None)
        if found:
            yield Found(f"{command.name} runs {found} once in each task, with the variables of the step", command.place)


def _whole_environment(subject: Subject) -> Iterator[Found]:
    directive = subject.script.directive("-V") if subject.script.scheduler == "pbs" else None
    if directive is not None:
        line = directive.place.line
        yield Found(
            "-V copies the submitting shell's whole environment into the job",
            directive.place,
            edits=(Edit(first=line, last=line, text="", safe=False),) if alone(subject, directive) else (),
        )
    for command in commands(subject, "qsub"):
        if "-V" in texts(command)[1:]:
            yield Found("qsub -V copies the submitting shell's whole environment into the job", command.place)


def _export_none(subject: Subject) -> Iterator[Found]:
    script = subject.script
    directive = script.directive("--export") if script.scheduler == "slurm" else None
    if directive is None or not directive.value or directive.variables:
        return
    names = [piece.partition("=")[0].upper() for piece in directive.value.split(",")]
    if "ALL" in names:
        return
    if any(a.name in ("SLURM_EXPORT_ENV", "SRUN_EXPORT_ENV") for a in script.assignments):
        return
    for launch in script.launches:
        if launch.launcher == "srun" and launch.option("export") is None:
            yield Found(
                f"--export={directive.value} holds for srun too (SLURM_EXPORT_ENV): what this script loads and exports does"
                " not reach the processes",
                directive.place,
                fix="Put unset SLURM_EXPORT_ENV before srun, or start with srun --export=ALL.",
                edits=(
                    Edit(first=launch.place.line, last=launch.place.line, text="unset SLURM_EXPORT_ENV", insert=True),
                )
                if not launch.place.file and launch.place.column == 1
                else (),
            )
            return


def _own_variables(subject: Subject) -> Iterator[Found]:
    if not submitted(subject) or not effective(subject):
        return
    seen = set()
    for made in subject.script.assignments:
        if (
            made.name not in _SIZES
            or made.how in ("unset", "default", "prefix")
            or made.name in seen
            or not made.exported
        ):
            continue
        if made.context != "batch" or made.value.is_unknown or made.conditional:
            continue
        seen.add(made.name)
        yield Found(f"{made.name} is the scheduler's own; srun and libraries read the new value", made.place)


_S = "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --time=00:10:00\n"
_P = "#!/bin/bash -l\n#PBS -l select=1:ncpus=8\n#PBS -l walltime=00:10:00\n"
_DOC = "https://slurm.schedmd.com/sbatch.html#SECTION_INPUT-ENVIRONMENT-VARIABLES"


_FAMILY = Family("SCHED_ENV_INHERIT")


RULES = (
    _FAMILY.rule(
        "submission-in-job",
        "warning",
        "a job submitted from within a job",
        "sbatch reads SLURM_ variables as options and"
        " copies the environment: sizes, bindings and the activated software of this job hold in the next.",
        "Submit with a clean environment.",
        _S + "srun python t.py\nsbatch --export=ALL next.sh\n",
        _S + "srun python t.py\nsbatch --export=NONE next.sh\n",
        _submission_inside,
        source=_DOC,
    ),
    _FAMILY.rule(
        "submission-in-step",
        "error",
        "a job submitted by every task",
        "The command runs once in each process.",
        "Submit from the batch script.",
        _S + "srun sbatch next.sh\n",
        _S + "srun python t.py\n",
        _within_step,
        source=_DOC,
    ),
    _FAMILY.rule(
        "whole-environment",
        "warning",
        "the submitting shell's environment is copied",
        "What happens to be set there (modules, conda, display, variables of another job) decides how the job runs.",
        "Set up the environment in the script.",
        _P + "#PBS -V\nmpiexec -n 4 python t.py\n",
        _P + "mpiexec -n 4 python t.py\n",
        _whole_environment,
        source="https://docs.alcf.anl.gov/running-jobs/ (qsub -V)",
    ),
    _FAMILY.rule(
        "export-none-inherited",
        "error",
        "an empty environment for srun too",
        "sbatch --export=NONE sets SLURM_EXPORT_ENV, which srun obeys.",
        "unset SLURM_EXPORT_ENV in the script.",
        _S + "#SBATCH --export=NONE\nmodule load x\nsrun python t.py\n",
        _S + "#SBATCH --export=NONE\nunset SLURM_EXPORT_ENV\nmodule load x\nsrun python t.py\n",
        _export_none,
        source="https://slurm.schedmd.com/sbatch.html#OPT_export",
    ),
    _FAMILY.rule(
        "scheduler-variable-set",
        "warning",
        "a variable of the scheduler is overwritten",
        "srun takes it as an option, and libraries take it for the truth about the job.",
        "Use a name of your own.",
        _S + "export SLURM_NTASKS=8\nsrun python t.py\n",
        _S + "export TASKS=8\nsrun python t.py\n",
        _own_variables,
        source=_DOC,
    ),
)
