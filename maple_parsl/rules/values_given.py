"""Values that cannot be, or that are not what they look like."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.rules.asking import change, effective
from maple_parsl.rules.base import Family, Found, Subject
from maple_parsl.rules.required import PLACEHOLDER
from maple_parsl.script import pbs
from maple_parsl.script.model import Directive
from maple_parsl.script.times import seconds

_COUNTS = frozenset(
    "--nodes --ntasks --ntasks-per-node --cpus-per-task --gpus-per-node --gpus --gpus-per-task --ntasks-per-gpu"
    " --cpus-per-gpu --ntasks-per-socket --ntasks-per-core --threads-per-core -nnodes".split()
)
_PLAIN = frozenset(["--nodes", "--ntasks", "--ntasks-per-node", "--cpus-per-task"])
_ZERO_ALLOWED = frozenset(["--gpus-per-node", "--gpus", "--gpus-per-task"])
_MAIL = frozenset(
    "NONE BEGIN END FAIL REQUEUE ALL INVALID_DEPEND STAGE_OUT TIME_LIMIT TIME_LIMIT_90 TIME_LIMIT_80 TIME_LIMIT_50"
    " ARRAY_TASKS".split()
)
_ARRAY = re.compile(r"\d+(?:-\d+(?::\d+)?)?(?:,\d+(?:-\d+(?::\d+)?)?)*(?:%\d+)?\Z")
_STUCK = re.compile(r"[\d:-]+[A-Za-z]{3,}")


def _literal(directive: Directive) -> str | None:
    """The value, where it is certain and complete."""
    if directive.variables or directive.value is None or re.search(r"[<>{}\[\]$]", directive.value):
        return None
    return directive.value


def _counts(subject: Subject) -> Iterator[Found]:
    for directive in effective(subject):
        if directive.name not in _COUNTS:
            continue
        text = _literal(directive)
        if text is None:
            if directive.value is None and not directive.trailing:
                yield Found(f"{directive.flag} has no value", directive.place)
            continue
        last = text.rpartition(":")[2] if directive.name.startswith("--gpus") else text
        place = directive.value_place or directive.place
        if re.match(r"-\d|0+\Z", last) and not (directive.name in _ZERO_ALLOWED and last == "0"):
            yield Found(f"{directive.flag}={text}: there must be at least one", place)
        elif directive.name in _PLAIN and re.match(r"[A-Za-z]{2,}\Z", last) and not PLACEHOLDER.search(text):
            yield Found(f"{directive.flag}={text} is no number", place)
        elif re.match(r"\d+\.\d+\Z", last):
            yield Found(f"{directive.flag}={text} is no whole number", place)
        elif (
            directive.name == "--nodes"
            and (match := re.match(r"(\d+)-(\d+)\Z", last))
            and int(match[1]) > int(match[2])
        ):
            yield Found(f"{directive.flag}={text}: the least is more than the most", place)
    request = pbs.request(subject.script) if subject.script.scheduler == "pbs" else None
    select = subject.script.directive("-l select")
    if request and select is not None and not select.variables and any(c.count == 0 for c in request.chunks):
        yield Found(f"select={select.value}: no chunk at all", select.place)
    for launch in subject.script.all_launches:
        for name in (
            "ntasks",
            "nodes",
            "ntasks_per_node",
            "nproc_per_node",
            "nnodes",
            "cpus_per_task",
            "num_processes",
        ):
            option = launch.option(name)
            number = option.value.number if option else None
            if option is not None and number is not None and number < 1 and not option.value.assumed:
                yield Found(f"{option.flag} is {number}: there must be at least one", option.place)


def _time(subject: Subject) -> Iterator[Found]:
    directive = subject.script.directive("walltime")
    text = _literal(directive) if directive else None
    scheduler = subject.script.scheduler
    if directive is None or not text or scheduler not in ("slurm", "pbs", "lsf") or _STUCK.match(text):
        return
    place = directive.value_place or directive.place
    if text.lower() in ("unlimited", "infinite", "-1", "0") and scheduler == "slurm":
        return
    total = seconds(text, scheduler)
    if total is None:
        form = {"slurm": "HH:MM:SS, D-HH:MM:SS or minutes", "pbs": "HH:MM:SS", "lsf": "HH:MM"}[scheduler]
        yield Found(f"{text!r} is no time; {scheduler} reads {form}", place)
    elif total == 0 and scheduler != "slurm":
        yield Found(f"a time limit of {text} ends the job at once", place)


def _short_time(subject: Subject) -> Iterator[Found]:
    directive = subject.script.directive("walltime")
    text = _literal(directive) if directive else None
    if directive is None or not text:
        return
    place, scheduler = directive.value_place or directive.place, subject.script.scheduler
    if scheduler == "slurm" and text in ("12", "24", "36", "48", "72", "96"):
        yield Found(f"{text} are minutes for Slurm", place, fix=f"Write {int(text):02d}:00:00 if hours are meant.")
    elif scheduler == "slurm" and (match := re.match(r"(\d{1,2}):(\d\d)\Z", text)) and int(match[1]) < 60:
        yield Found(
            f"{text} is {int(match[1])} minutes and {int(match[2])} seconds for Slurm",
            place,
            fix=f"Write {text}:00 if hours and minutes are meant.",
            edits=change(subject, directive.place, text, f"{text}:00", safe=False),
        )
    elif scheduler == "pbs" and re.match(r"\d{1,3}\Z", text):
        yield Found(f"{text} are seconds for PBS", place)


def _lists(subject: Subject) -> Iterator[Found]:
    for directive in effective(subject):
        text = _literal(directive) if directive.name != "--array" else directive.value
        if not text or directive.variables:
            continue
        place = directive.value_place or directive.place
        if directive.name == "--array" and not _ARRAY.match(text) and not re.search(r"[<>{}$]", text):
            yield Found(f"--array={text}: Slurm reads 0-9, 0-9:2, 1,3,5 and 0-9%2", place)
        elif directive.name == "--mail-type":
            wrong = [w for w in text.upper().split(",") if w not in _MAIL]
            if wrong:
                yield Found(f"--mail-type={text}: Slurm has no {wrong[0]}", place)
        elif directive.name == "--dependency" and not re.match(
            r"(?:(?:after\w*|expand|singleton)(?::\w+(?:\+\d+)?)*[,?]?)+\Z", text
        ):
            yield Found(f"--dependency={text}: Slurm reads afterok:JOB and the like", place)
        elif directive.name == "--signal" and not re.match(r"(?:[RB]+:)?(?:SIG)?[A-Z0-9]+(?:@\d+)?\Z", text, re.I):
            yield Found(f"--signal={text}: Slurm reads B:USR1@180 and the like", place)
        elif directive.name in ("--mem", "--mem-per-cpu", "--mem-per-gpu") and not re.match(
            r"\d+(?:[KMGT]B?)?\Z", text, re.I
        ):
            yield Found(f"{directive.name}={text}: Slurm reads a whole number with K, M, G or T", place)


_S = "#!/bin/bash\n#SBATCH --nodes=2\n"
_T = "#SBATCH --time=00:10:00\n"
_END = "srun python t.py\n"
_DOC = "https://slurm.schedmd.com/sbatch.html"


_FAMILY = Family("INVALID_VALUE", source=_DOC)


RULES = (
    _FAMILY.rule(
        "count-below-one",
        "error",
        "a number that cannot be",
        "The scheduler refuses zero, negative and broken numbers.",
        "Give a whole number of at least one.",
        "#!/bin/bash\n#SBATCH --nodes=0\n" + _T + _END,
        _S + _T + _END,
        _counts,
    ),
    _FAMILY.rule(
        "time-unreadable",
        "error",
        "a time limit in no form the scheduler reads",
        "The scheduler refuses it: invalid time limit.",
        "Write HH:MM:SS.",
        _S + "#SBATCH --time=2h\n" + _END,
        _S + _T + _END,
        _time,
    ),
    _FAMILY.rule(
        "time-units",
        "warning",
        "a time limit that is shorter than it looks",
        "A bare number is minutes for Slurm and seconds for PBS; two numbers are minutes and seconds.",
        "Write HH:MM:SS.",
        _S + "#SBATCH --time=24\n" + _END,
        _S + "#SBATCH --time=24:00:00\n" + _END,
        _short_time,
    ),
    _FAMILY.rule(
        "value-unreadable",
        "error",
        "a value in no form the scheduler reads",
        "The scheduler refuses the script.",
        "Write it in the scheduler's form.",
        _S + _T + "#SBATCH --mem=eight\n" + _END,
        _S + _T + "#SBATCH --mem=8G\n" + _END,
        _lists,
    ),
)
