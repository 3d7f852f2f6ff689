"""Shell text in directives, where nothing expands it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.finding import Edit
from maple_parsl.rules.asking import effective, row
from maple_parsl.rules.base import Found, Rule, Subject

# What Slurm itself puts into file names.
_PATTERNS = {
    "SLURM_JOB_ID": "%j", "SLURM_JOBID": "%j", "SLURM_ARRAY_JOB_ID": "%A", "SLURM_ARRAY_TASK_ID": "%a", "USER": "%u",
    "SLURM_JOB_NAME": "%x", "SLURM_NODEID": "%n", "SLURM_PROCID": "%t", "LOGNAME": "%u", "SLURM_JOB_USER": "%u",
}  # fmt: skip
_FILES = ("--output", "--error", "--input", "-o", "-e")


def _variable(subject: Subject) -> Iterator[Found]:
    for directive in effective(subject):
        if not directive.variables or directive.value is None:
            continue
        edits: tuple[Edit, ...] = ()
        fix = None
        names = [n for n in directive.variables if n.isidentifier()]
        if directive.scheduler == "slurm" and directive.name in _FILES:
            fix = (
                "Slurm fills in its own patterns in file names: %j (job id), %u (user), %x (job name), %a (array task)."
            )
            if names and all(n in _PATTERNS for n in names) and len(names) == len(directive.variables):
                text = row(subject, directive.place)
                for name in names:
                    text = re.sub(r"\$\{?" + name + r"\b\}?", _PATTERNS[name], text)
                edits = (Edit(first=directive.place.line, last=directive.place.line, text=text, safe=True),)
        shown = ", ".join(f"${n}" if n.isidentifier() else "$(…)" for n in directive.variables)
        lost = directive.name in _FILES
        yield Found(
            f"{directive.flag} is given {directive.value!r} as it stands; the scheduler does not expand {shown}",
            directive.value_place or directive.place,
            severity="warning" if lost and directive.scheduler != "slurm" else None,
            fix=fix,
            edits=edits,
        )


def _tilde(subject: Subject) -> Iterator[Found]:
    for directive in effective(subject):
        if directive.value and re.match(r"~[\w.-]*(?:/|\Z)", directive.value):
            yield Found(
                f"{directive.flag} is given {directive.value!r} as it stands: ~ becomes a folder of that name",
                directive.value_place or directive.place,
            )


_SLURM = "#!/bin/bash\n#SBATCH --nodes=1\n"
RULES = (
    Rule(
        id="directive-variable",
        fault_class="DIRECTIVE_VAR_EXPANSION",
        severity="error",
        title="a shell variable in a directive",
        why="Directives are comments that the scheduler reads before any shell runs; $NAME and $(…) stay as they are.",
        source="https://slurm.schedmd.com/sbatch.html (directives); PBS User's Guide, submitting a job",
        fix="Write the value itself, or give the option on the command line of sbatch or qsub.",
        bad=_SLURM + "#SBATCH --account=$PROJECT\nsrun python t.py\n",
        good=_SLURM + "#SBATCH --account=demo\n#SBATCH --output=log-%j.txt\nsrun python t.py\n",
        check=_variable,
    ),
    Rule(
        id="directive-tilde",
        fault_class="DIRECTIVE_VAR_EXPANSION",
        severity="warning",
        title="~ in a directive",
        why="~ is expanded by shells, and no shell reads directives.",
        source="https://slurm.schedmd.com/sbatch.html (filename pattern)",
        fix="Write the whole path, or one relative to the folder of submission.",
        bad=_SLURM + "#SBATCH --output=~/logs/out.txt\nsrun python t.py\n",
        good=_SLURM + "#SBATCH --output=logs/out.txt\nsrun python t.py\n",
        check=_tilde,
    ),
)
