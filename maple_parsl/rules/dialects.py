"""Options and variables of another scheduler."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.rules.asking import change, commands, effective, option, submitted, texts
from maple_parsl.rules.base import Family, Found, Subject
from maple_parsl.rules.ignored_directives import FOREIGN
from maple_parsl.script import pbs
from maple_parsl.script.model import Directive

_PREFIX = {"slurm": "SLURM_", "pbs": "PBS_", "lsf": "LSB_"}
# Set by other software too, so no sign of a scheduler.
_SHARED = frozenset(["SLURM_CLUSTER_NAME", "SLURM_CONF", "PBS_HOME"])
_NAMES = {"slurm": "Slurm", "pbs": "PBS", "lsf": "LSF", "cobalt": "Cobalt", "sge": "Grid Engine"}
_EXPECTED = {"srun": "slurm", "jsrun": "lsf"}
_QUEUE_COMMANDS = {
    "sbatch": "slurm",
    "salloc": "slurm",
    "scancel": "slurm",
    "qsub": "pbs",
    "qdel": "pbs",
    "bsub": "lsf",
}


def _foreign(subject: Subject) -> Iterator[Found]:
    done = set()
    for directive in subject.script.directives:
        if directive.state == "foreign" and directive.scheduler not in done:
            done.add(directive.scheduler)
            yield Found(
                f"{directive.raw.split()[0]} lines in a script for {_NAMES.get(subject.script.scheduler, 'another')}",
                directive.place,
            )


def _slurm_words(directive: Directive) -> str | None:
    """What is meant by an option that sbatch reads otherwise."""
    bare = directive.name.lstrip("-")
    if bare in ("l", "label") and (directive.value or directive.trailing):
        return FOREIGN["l"]
    if directive.name == "--wait" and directive.value and re.match(r"\d+:\d", directive.value):
        return FOREIGN["W"]
    return FOREIGN.get(bare) if directive.flag.startswith("--") or len(bare) == 1 else None


def _other_words(subject: Subject) -> Iterator[Found]:
    for directive in effective(subject):
        if directive.scheduler == "slurm":
            meant = _slurm_words(directive)
            if meant:
                exact = meant.startswith("--") and " " not in meant and directive.flag.startswith("--")
                yield Found(
                    f"{directive.flag} is an option of another scheduler; for Slurm it is {meant}",
                    directive.place,
                    fix=f"Write {meant}.",
                    edits=change(subject, directive.place, directive.flag, meant, safe=False)
                    if exact and meant != "--nodes" and meant != "--exclusive"
                    else (),
                )
        elif directive.scheduler == "pbs":
            if directive.flag.startswith("--"):
                yield Found(f"{directive.flag} is an option of Slurm; qsub has none with two dashes", directive.place)
            elif directive.name == "-p" and directive.value and not re.match(r"[+-]?\d+\Z", directive.value):
                yield Found(f"-p {directive.value}: for PBS -p is a priority; a queue is -q", directive.place,
                            edits=change(subject, directive.place, "-p", "-q", safe=False))  # fmt: skip
            elif (
                directive.name == "-J"
                and directive.value
                and not re.match(r"\d+(-\d+)?(:\d+)?(%\d+)?\Z", directive.value)
            ):
                yield Found(f"-J {directive.value}: for PBS -J is an array; a name is -N", directive.place,
                            edits=change(subject, directive.place, "-J", "-N", safe=False))  # fmt: skip
            elif directive.name in ("-t", "-n", "-W") and directive.value and re.match(r"\d+:\d+", directive.value):
                yield Found(f"{directive.flag} {directive.value}: PBS takes the time as -l walltime=…", directive.place)
            elif directive.name in ("-o", "-e") and directive.value and re.search(r"%[jAaxu]", directive.value):
                yield Found(f"{directive.value}: % patterns are Slurm's; PBS takes them as letters", directive.place,
                            severity="warning")  # fmt: skip


def _torque(subject: Subject) -> Iterator[Found]:
    if subject.script.scheduler == "pbs":
        chosen = subject.script.directive("-l select")
        for name in ("-l nodes", "-l ppn", "-l gpus", "-l procs"):
            directive = subject.script.directive(name)
            if directive is None or directive.variables:
                continue
            if name != "-l nodes" and chosen is None:
                continue
            sure = chosen is not None or (subject.site is not None and subject.site.scheduler.kind == "pbs")
            request = pbs.parse(directive.value or "", torque=True)
            shown = f"-l {name[3:]}={directive.value}"
            wanted = None
            if name == "-l nodes" and len(request.chunks) == 1 and request.count:
                per = request.chunks[0].number("ppn")
                gpus = request.chunks[0].number("gpus")
                wanted = f"-l select={request.count}" + (f":ncpus={per}:mpiprocs={per}" if per else "")
                wanted += f":ngpus={gpus}" if gpus else ""
            yield Found(
                f"{shown} is Torque's form; PBS Pro and OpenPBS ask with -l select",
                directive.place,
                severity="error" if sure else "warning",
                fix=f"Write {wanted}." if wanted else None,
                edits=change(subject, directive.place, shown, wanted, safe=False) if wanted and not chosen else (),
            )
    for command in commands(subject, "qsub"):
        words = texts(command)
        for index, word in enumerate(words[1:], 1):
            value = (
                words[index + 1] if word == "-l" and index + 1 < len(words) else word[2:] if word[:2] == "-l" else ""
            )
            if value.startswith(("select=", "nodes=")) and subject.script.scheduler not in ("pbs", "none"):
                yield Found(f"qsub -l {value} in a script for {_NAMES[subject.script.scheduler]}", command.place)
            elif value.startswith("nodes=") and ":ppn=" in value:
                yield Found(f"qsub -l {value} is Torque's form", command.place, severity="warning")
            elif value.startswith("select=") and option(words, "-pe"):
                yield Found("-l select (PBS) and -pe (Grid Engine) in one command", command.place)


def _variables(subject: Subject) -> Iterator[Found]:
    own = subject.script.scheduler
    if own not in _PREFIX or not submitted(subject):
        return
    for other, prefix in _PREFIX.items():
        if other == own:
            continue
        names = [
            r
            for r in subject.script.all_references
            if r.name.startswith(prefix) and r.name not in _SHARED and r.context in ("batch", "task")
        ]
        tested = any(r.operator or r.command in ("[", "[[", "test", "if", "case", "") for r in names)
        if not names or tested or any(r.assigned for r in names) or subject.script.assigned(names[0].name):
            continue
        yield Found(
            f"${names[0].name} is a variable of {_NAMES[other]}; in a job of {_NAMES[own]} it is empty", names[0].place
        )


def _launchers(subject: Subject) -> Iterator[Found]:
    own = subject.script.scheduler
    if own not in _PREFIX or not submitted(subject):
        return
    for launch in subject.script.launches:
        wanted = _EXPECTED.get(launch.launcher)
        if wanted and wanted != own and not launch.command.conditional:
            yield Found(
                f"{launch.launcher} starts processes under {_NAMES[wanted]}; this is a job of {_NAMES[own]}",
                launch.place,
            )
        if launch.launcher == "aprun" and not launch.command.conditional and own == "slurm":
            yield Found("aprun is no launcher of a Slurm system", launch.place)


_S = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --time=00:10:00\n"
_P = "#!/bin/bash -l\n#PBS -l select=2:ncpus=8:mpiprocs=4\n#PBS -l walltime=00:10:00\n"
_SBATCH, _PBS = "https://slurm.schedmd.com/rosetta.pdf", "https://openpbs.org (PBS User's Guide, requesting resources)"


_FAMILY = Family("SCHED_DIALECT")


RULES = (
    _FAMILY.rule(
        "directives-of-two-schedulers",
        "warning",
        "directives of two schedulers in one script",
        "Each scheduler reads its own lines only, or takes the others' for something else.",
        "Keep the lines of the scheduler the script is for.",
        _S + "#PBS -l walltime=01:00:00\nsrun python t.py\n",
        _S + "srun python t.py\n",
        _foreign,
        source=_SBATCH,
    ),
    _FAMILY.rule(
        "option-of-other-scheduler",
        "error",
        "an option of another scheduler",
        "The same letter means something else, or nothing, to another scheduler.",
        "Use this scheduler's option.",
        "#!/bin/bash\n#SBATCH -l walltime=01:00:00\nsrun python t.py\n",
        _S + "srun python t.py\n",
        _other_words,
        source=_SBATCH,
    ),
    _FAMILY.rule(
        "torque-nodes",
        "warning",
        "Torque's nodes= and ppn=",
        "PBS Pro and OpenPBS ask for chunks with select; sites refuse the old form, and it cannot be mixed.",
        "Write -l select=NODES:ncpus=…:mpiprocs=…:ngpus=….",
        "#!/bin/bash -l\n#PBS -l nodes=2:ppn=4\n#PBS -l walltime=00:10:00\nmpiexec -n 8 python t.py\n",
        _P + "mpiexec -n 8 python t.py\n",
        _torque,
        source=_PBS,
    ),
    _FAMILY.rule(
        "variable-of-other-scheduler",
        "error",
        "a variable of another scheduler",
        "The variable is not set here, so that it expands to nothing.",
        "Use this scheduler's variable.",
        _P + "head -n 1 $SLURM_JOB_NODELIST\nmpiexec -n 8 python t.py\n",
        _P + "head -n 1 $PBS_NODEFILE\nmpiexec -n 8 python t.py\n",
        _variables,
        source=_SBATCH,
    ),
    _FAMILY.rule(
        "launcher-of-other-scheduler",
        "error",
        "a launcher of another scheduler",
        "srun asks Slurm, jsrun asks LSF; neither finds its daemon in a job of another scheduler.",
        "Use the launcher of this system (mpiexec under PBS).",
        _P + "srun -n 8 python t.py\n",
        _P + "mpiexec -n 8 python t.py\n",
        _launchers,
        source="https://slurm.schedmd.com/srun.html",
    ),
)
