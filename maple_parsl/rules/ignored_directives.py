"""Scheduler directives that are not heeded."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.finding import Edit
from maple_parsl.rules.asking import alone, change, is_shell, near, row
from maple_parsl.rules.base import Family, Found, Subject
from maple_parsl.script import slurm_options as slurm
from maple_parsl.script.model import Directive
from maple_parsl.script.text import _ODD_PATTERN

_MARK = {"slurm": "#SBATCH", "pbs": "#PBS", "lsf": "#BSUB"}
_PBS_LETTERS = frozenset("aAcCefGhIjJkKlmMNopPqrRSuvVWXzCtbdDTw")
# Words of other schedulers; the dialect rule speaks of these.
FOREIGN = {
    "walltime": "--time", "queue": "--partition", "project": "--account", "select": "--nodes",
    "ngpus": "--gpus-per-node", "ppn": "--ntasks-per-node", "ncpus": "--cpus-per-task", "procs": "--ntasks",
    "nprocs": "--ntasks", "runtime": "--time", "wall-time": "--time", "mpiprocs": "--ntasks-per-node",
    "nodecount": "--nodes", "place": "--exclusive", "W": "--time", "R": "--constraint", "l": "--time and --nodes",
}  # fmt: skip


def _own(subject: Subject, state: str) -> Iterator[Directive]:
    for directive in subject.script.directives:
        if directive.state == state and directive.scheduler == subject.script.scheduler and directive.name:
            yield directive


def _first_command(subject: Subject) -> int:
    for number, text in enumerate(subject.lines, 1):
        if text.strip() and not text.lstrip().startswith("#"):
            return number
    return len(subject.lines)


def _too_late(subject: Subject) -> Iterator[Found]:
    if not is_shell(subject):
        return
    first = _first_command(subject)
    done: set[int] = set()
    for directive in _own(subject, "too_late"):
        line = directive.place.line
        if line in done:
            continue
        done.add(line)
        again = subject.script.directive(directive.name) is not None
        text = row(subject, directive.place)
        yield Found(
            f"{text.strip()} stands behind the first command (line {first}), where it is a comment",
            directive.place,
            edits=(
                Edit(first=first, last=first, text=text, insert=True, safe=not again),
                Edit(first=line, last=line, text="", safe=not again),
            ),
        )


def _commented(subject: Subject) -> Iterator[Found]:
    done: set[int] = set()
    for directive in subject.script.directives:
        if directive.state != "commented" or directive.place.line in done or not directive.name:
            continue
        if subject.script.scheduler not in (directive.scheduler, "none"):
            continue
        done.add(directive.place.line)
        text = row(subject, directive.place)
        mark = re.match(r"\s*#[#\s]*[A-Za-z]+", text)
        if mark is None or (mark[0].strip().startswith("##") and mark[0].strip("# ").isupper()):
            continue  # the usual way to switch one off
        if subject.script.directive(directive.name) is not None and mark[0].strip("# \t").isupper():
            continue  # an alternative that is switched off
        wanted = _MARK.get(directive.scheduler, "")
        yield Found(
            f"{mark[0].strip()} is a comment; the scheduler reads only lines that begin with {wanted}",
            directive.place,
            edits=change(subject, directive.place, mark[0], wanted, safe=False),
        )


def _in_document(subject: Subject) -> Iterator[Found]:
    for document in subject.script.heredocs:
        if document.submitted or document.file is not None or document.command in ("sbatch", "qsub", "bsub"):
            continue
        reader = document.command or (document.run_by[0] if document.run_by else "")
        if reader not in ("bash", "sh", "srun", "mpiexec", "mpirun", "ssh"):
            continue
        first, last = document.place.line, document.place.line + document.text.count("\n")
        for directive in subject.script.directives:
            if directive.state == "in_heredoc" and first <= directive.place.line <= last:
                yield Found(
                    f"{row(subject, directive.place).strip()} is text that {reader} reads; no scheduler does",
                    directive.place,
                )
                break


_TEXTS = frozenset("--job-name --output --error --chdir --comment --input --workdir -N -o -e".split())


def _trailing(subject: Subject) -> Iterator[Found]:
    for directive in _own(subject, "effective"):
        if not directive.trailing or subject.script.scheduler not in ("slurm", "pbs"):
            continue
        if _ODD_PATTERN.search(directive.raw) or re.match(r"[\d:-]+[A-Za-z#]", directive.value or ""):
            continue  # other rules speak of these
        rest = " ".join(directive.trailing)
        edits: tuple[Edit, ...] = ()
        if directive.name in _TEXTS and directive.value and not directive.quoted:
            both = f"{directive.value} {rest}"
            edits = change(subject, directive.place, both, f'"{both}"')
        yield Found(
            f"{rest!r} is no option; reading of this line stops there",
            directive.place,
            edits=edits,
        )


def _second_mark(subject: Subject) -> Iterator[Found]:
    for directive in _own(subject, "effective"):
        match = re.match(r"#+\s*(SBATCH|PBS|BSUB)\s+-", directive.comment or "")
        if match and directive.comment:
            text = row(subject, directive.place)
            at = text.index(directive.comment) if directive.comment in text else 0
            edits = (
                Edit(
                    first=directive.place.line,
                    last=directive.place.line,
                    text=text[:at].rstrip() + "\n#" + text[at:].lstrip("# "),
                    safe=True,
                ),
            )
            yield Found(
                f"{directive.comment} on the same line is a comment", directive.place, edits=edits if at else ()
            )
            return


def _repeated(subject: Subject) -> Iterator[Found]:
    for directive in _own(subject, "effective"):
        earlier = directive.overrides
        if earlier is None or subject.script.scheduler not in ("slurm", "pbs"):
            continue
        if directive.name == "--mail-type":
            continue  # these add up
        if subject.script.scheduler == "pbs" and directive.name in ("-W", "-v", "-m", "-M", "-l"):
            continue
        first = next(d for d in subject.directives_by_line[earlier.line] if d.place == earlier)
        same = first.value == directive.value
        yield Found(
            f"{directive.flag} was given on line {earlier.line} already"
            + ("" if same else f"; {first.value!r} there is not heeded, {directive.value!r} here is"),
            directive.place,
            severity="note" if same else "warning",
            edits=(Edit(first=earlier.line, last=earlier.line, text="", safe=True),) if alone(subject, first) else (),
        )


def _unknown(subject: Subject) -> Iterator[Found]:
    for directive in _own(subject, "effective"):
        bare = directive.name.lstrip("-")
        if subject.script.scheduler == "pbs":
            if (
                directive.flag.startswith("-")
                and directive.flag[1:2] not in _PBS_LETTERS
                and directive.flag[1:2] != "-"
            ):
                yield Found(f"{directive.flag} is no option of qsub", directive.place)
            continue
        if subject.script.scheduler != "slurm":
            continue
        if not directive.flag.startswith("--") and directive.value:
            word = directive.flag[1:] + directive.value.partition("=")[0]
            if slurm.known(word) and f" -{word}" in f" {directive.raw.partition('SBATCH')[2].strip()}":
                yield Found(
                    f"-{word} with one dash is {directive.flag} with the value {directive.value!r}",
                    directive.place,
                    fix=f"Write --{word}.",
                    edits=change(subject, directive.place, f" -{word}", f" --{word}"),
                )
                continue
        if not bare or slurm.known(bare) or bare in FOREIGN:
            continue
        close = near(bare, (*slurm.VALUES, *slurm.SWITCHES, *slurm.ALIASES))
        sure = close is not None or len(bare) == 1
        yield Found(
            f"sbatch has no option {directive.flag}" + (f"; is --{close} meant?" if close else ""),
            directive.place,
            severity="error" if sure else "warning",
            fix=f"Write --{close}." if close else None,
            edits=change(subject, directive.place, directive.flag, f"--{close}", safe=False) if close else (),
        )


_DOC = "https://slurm.schedmd.com/sbatch.html"
_TOP = "#!/bin/bash\n#SBATCH --nodes=2\n"


_FAMILY = Family("DIRECTIVE_IGNORED", source=_DOC)


RULES = (
    _FAMILY.rule(
        "directive-after-command",
        "error",
        "a directive behind the first command",
        "The scheduler stops reading directives at the first line that is a command; the job gets defaults instead.",
        "Move the directives above every command.",
        "#!/bin/bash\nset -e\n#SBATCH --nodes=2\nsrun python t.py\n",
        _TOP + "set -e\nsrun python t.py\n",
        _too_late,
    ),
    _FAMILY.rule(
        "directive-is-comment",
        "warning",
        "a directive written so that it is a comment",
        "A blank behind #, or lower case, makes the line an ordinary comment.",
        "Write #SBATCH (or #PBS) in capitals at the line's beginning, or delete the line.",
        _TOP + "# SBATCH --gpus-per-node=4\nsrun python t.py\n",
        _TOP + "##SBATCH --gpus-per-node=4\nsrun python t.py\n",
        _commented,
    ),
    _FAMILY.rule(
        "directive-in-document",
        "warning",
        "a directive in a text that another program reads",
        "Directives count in a file that is submitted, not in a here-document given to a shell or a launcher.",
        "Move the directive to the top of the script, or submit the text with sbatch.",
        _TOP + "bash <<'END'\n#SBATCH --gpus-per-node=4\npython t.py\nEND\n",
        _TOP + "sbatch <<'END'\n#!/bin/bash\n#SBATCH --gpus-per-node=4\npython t.py\nEND\n",
        _in_document,
    ),
    _FAMILY.rule(
        "directive-stray-words",
        "error",
        "words in a directive that belong to no option",
        "Reading of the line stops at the first word that is no option or value; everything behind it is lost.",
        "Put values with blanks in quotes; begin comments with #.",
        _TOP + "#SBATCH --job-name=Big run\nsrun python t.py\n",
        _TOP + '#SBATCH --job-name="Big run"\nsrun python t.py\n',
        _trailing,
    ),
    _FAMILY.rule(
        "directive-second-on-line",
        "error",
        "a second directive on the same line",
        "The second #SBATCH begins a comment.",
        "Give every directive a line of its own.",
        "#!/bin/bash\n#SBATCH --nodes=2 #SBATCH --ntasks-per-node=4\nsrun python t.py\n",
        "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=4\nsrun python t.py\n",
        _second_mark,
    ),
    _FAMILY.rule(
        "directive-repeated",
        "warning",
        "the same option twice",
        "The last one counts, the other is lost.",
        "Keep one.",
        _TOP + "#SBATCH -N 4\nsrun python t.py\n",
        _TOP + "#SBATCH -n 4\nsrun python t.py\n",
        _repeated,
    ),
    _FAMILY.rule(
        "directive-unknown",
        "error",
        "an option the scheduler does not have",
        "The scheduler refuses the script, or takes the word for something else.",
        "Look the option up in the scheduler's manual.",
        _TOP + "#SBATCH --ntask-per-node=4\nsrun python t.py\n",
        _TOP + "#SBATCH --ntasks-per-node=4\nsrun python t.py\n",
        _unknown,
    ),
)
