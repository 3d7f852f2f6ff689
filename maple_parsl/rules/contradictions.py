"""Statements of one script that contradict each other."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.rules.asking import effective, nodes, walltime, whole
from maple_parsl.rules.base import Family, Found, Subject
from maple_parsl.script import pbs
from maple_parsl.script.model import Directive
from maple_parsl.script.times import seconds

_PAIRS = (
    ("--exclusive", "--oversubscribe"),
    ("--requeue", "--no-requeue"),
    ("--overcommit", "--exact"),
    ("--hold", "--immediate"),
)
_COUNTS = {
    "--nodes": r"nodes?|machines?",
    "--ntasks": r"tasks|processes|ranks",
    "--ntasks-per-node": r"(?:tasks?|processes|ranks?)(?: per node|/node)",
    "--cpus-per-task": r"(?:cpus?|cores?)(?: per task)?",
}


_NUMBERS = dict(zip("one two three four five six seven eight nine ten".split(), range(1, 11), strict=True))
_SPAN = re.compile(r"#+\s*(\d+)\s*(min(?:ute)?s?|h(?:ou)?rs?|h|days?)\s*\Z", re.I)
# Numbers of other things, and numbers that are limits or examples.
_OTHER_UNITS = re.compile(
    r"\d+\s*(?:x\s*)?(?:gpus?|gcds?|cpus?|cores?|threads?|gi?b|mi?b|min\w*|hours?|hrs?|[avh]\d{2,3}\b|tasks? per|ranks? per)|=\s*\d+",
    re.I,
)
_BOUNDS = re.compile(r"max|min|up to|least|most|e\.g|for example|<|>|\bor\b|\bif\b|was|default|slurm \d|%", re.I)


def hosts(text: str) -> int | None:
    """How many hosts a list such as ``node[1-3,7],login`` names."""
    total = 0
    for piece in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        bracket = re.findall(r"\[([^\]]*)\]", piece)
        if not bracket:
            total += 1
            continue
        count = 1
        for inside in bracket:
            here = 0
            for part in inside.split(","):
                match = re.match(r"(\d{1,9})(?:-(\d{1,9}))?\Z", part)
                if match is None:
                    return None
                here += int(match[2]) - int(match[1]) + 1 if match[2] else 1
            count *= here
        total += count
    return total


def _list(directive: Directive | None) -> int | None:
    if directive is None or not directive.value or directive.variables or "/" in directive.value:
        return None
    return hosts(directive.value)


def _tasks(subject: Subject) -> Iterator[Found]:
    total, each = subject.script.directive("--ntasks"), subject.script.directive("--ntasks-per-node")
    count, per_node, number = whole(total), whole(each), nodes(subject)
    if (
        total is None
        or each is None
        or not count
        or not per_node
        or not subject.script.directive("--nodes")
        or not number
    ):
        return
    if count > per_node * number:
        yield Found(
            f"--ntasks={count}, and {number} nodes x {per_node} tasks are {number * per_node}",
            total.place,
            severity="error",
        )
    elif count != per_node * number:
        yield Found(
            f"--ntasks={count}, and {number} nodes x {per_node} tasks are {number * per_node}; with --ntasks the number per"
            " node is only the most",
            total.place,
        )


def _node_list(subject: Subject) -> Iterator[Found]:
    directive = subject.script.directive("--nodelist")
    count, number = _list(directive), nodes(subject)
    if directive is not None and count and number and subject.script.directive("--nodes") and count > number:
        yield Found(f"--nodelist names {count} nodes, --nodes asks for {number}", directive.place)
    left_out = subject.script.directive("--exclude")
    if directive is not None and left_out is not None and directive.value and directive.value == left_out.value:
        yield Found(f"{directive.value} is asked for and excluded", left_out.place)


def _pairs(subject: Subject) -> Iterator[Found]:
    if subject.script.scheduler != "slurm":
        return
    for first, second in _PAIRS:
        one, two = subject.script.directive(first), subject.script.directive(second)
        if one is not None and two is not None:
            yield Found(f"{first} (line {one.place.line}) and {second}", two.place)


def _comments(subject: Subject) -> Iterator[Found]:
    yield from _number_comments(subject)
    yield from _time_comment(subject)


def _number_comments(subject: Subject) -> Iterator[Found]:
    """A number in the comment of a directive's line that is another one than the directive's."""
    for directive in effective(subject):
        words = _COUNTS.get(directive.name)
        if not words or directive.number is None or not directive.comment:
            continue
        match = re.match(
            rf"#+\s*(?:use |using |number of |total )?(\d+|{'|'.join(_NUMBERS)})\s+(?:{words})\s*(?:[.,;)]|\Z)",
            directive.comment,
            re.I,
        )
        said_number = _NUMBERS.get(match[1].lower()) or int(match[1]) if match else None
        if match and said_number != directive.number:
            yield Found(
                f"{directive.flag} is {directive.number}, and its comment says {match[0].lstrip('# ')!r}",
                directive.place,
            )
            continue
        said = _OTHER_UNITS.sub(" ", directive.comment)
        numbers = [int(n) for n in re.findall(r"(?<![\w.-])\d{1,6}(?![\w.%])", said)]
        about = re.search(rf"\b(?:{words})", said, re.I) and not _BOUNDS.search(said)
        if about and numbers and directive.number not in numbers:
            yield Found(
                f"{directive.flag} is {directive.number}, and its comment speaks of {numbers[0]}",
                directive.place,
                severity="note",
            )


def _time_comment(subject: Subject) -> Iterator[Found]:
    """The whole comment of the time limit is another time."""
    directive, limit = subject.script.directive("walltime"), walltime(subject)
    match = _SPAN.match(directive.comment or "") if directive is not None else None
    if directive is None or match is None or limit is None:
        return
    if int(match[1]) * {"m": 60, "h": 3600, "d": 86400}[match[2][0].lower()] != int(limit):
        yield Found(
            f"{directive.flag} is {directive.value}, and its comment says {match[0].lstrip('# ')!r}", directive.place
        )


def _timeout(subject: Subject) -> Iterator[Found]:
    limit = walltime(subject)
    signal = subject.script.directive("--signal")
    match = re.search(r"@(\d+)\Z", signal.value or "") if signal else None
    if limit and signal is not None and match and int(match[1]) >= limit:
        yield Found(f"--signal={signal.value} is {match[1]} s before the end of a job of {limit}", signal.place)
    shortest = subject.script.directive("--time-min")
    least = seconds(shortest.value, "slurm") if shortest and shortest.value and not shortest.variables else None
    if limit and shortest is not None and least and least > limit:
        yield Found(f"--time-min={shortest.value} is more than --time", shortest.place)


def _chunks(subject: Subject) -> Iterator[Found]:
    if subject.script.scheduler != "pbs":
        return
    select = subject.script.directive("-l select")
    for name in ("-l ncpus", "-l mem", "-l ngpus", "-l mpiprocs"):
        directive = subject.script.directive(name)
        if select is not None and directive is not None:
            yield Found(f"{name} for the whole job beside -l select, which asks per chunk", directive.place)
    request = pbs.request(subject.script)
    for chunk in request.chunks if request and select is not None else ():
        cores, processes = chunk.number("ncpus"), chunk.number("mpiprocs")
        threads = chunk.number("ompthreads") or 1
        if cores and processes and processes * threads > cores and select is not None:
            yield Found(
                f"mpiprocs={processes} x {threads} threads in a chunk of ncpus={cores}",
                select.place,
                severity="warning",
            )


_S = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --time=00:10:00\n"
_END = "srun python t.py\n"
_DOC = "https://slurm.schedmd.com/sbatch.html"


_FAMILY = Family("CONTRADICTION", source=_DOC)


RULES = (
    _FAMILY.rule(
        "tasks-against-nodes",
        "warning",
        "tasks, nodes and tasks per node do not fit",
        "With --ntasks given, --ntasks-per-node is a maximum; a total that is too large is refused.",
        "Keep nodes and tasks per node only.",
        _S + "#SBATCH --ntasks-per-node=4\n#SBATCH --ntasks=4\n" + _END,
        _S + "#SBATCH --ntasks-per-node=4\n#SBATCH --ntasks=8\n" + _END,
        _tasks,
    ),
    _FAMILY.rule(
        "nodelist-against-nodes",
        "error",
        "more nodes listed than asked for",
        "The request cannot be met.",
        "Let the numbers agree.",
        _S + "#SBATCH --nodelist=n[1-3]\n" + _END,
        _S + "#SBATCH --nodelist=n[1-2]\n" + _END,
        _node_list,
    ),
    _FAMILY.rule(
        "options-against-each-other",
        "warning",
        "two options that exclude each other",
        "Only one of them can hold.",
        "Keep one.",
        _S + "#SBATCH --requeue\n#SBATCH --no-requeue\n" + _END,
        _S + "#SBATCH --no-requeue\n" + _END,
        _pairs,
    ),
    _FAMILY.rule(
        "comment-against-value",
        "warning",
        "a comment states another number",
        "One of the two is out of date.",
        "Correct the one that is wrong.",
        "#!/bin/bash\n#SBATCH --nodes=4  # 8 nodes\n#SBATCH --time=00:10:00\n" + _END,
        "#!/bin/bash\n#SBATCH --nodes=8  # 8 nodes\n#SBATCH --time=00:10:00\n" + _END,
        _comments,
    ),
    _FAMILY.rule(
        "times-against-each-other",
        "error",
        "times that do not fit into each other",
        "The signal comes at once, or the request is refused.",
        "Let the shorter time be the shorter.",
        _S + "#SBATCH --signal=USR1@900\n" + _END,
        _S + "#SBATCH --signal=USR1@120\n" + _END,
        _timeout,
    ),
    _FAMILY.rule(
        "select-and-job-resource",
        "error",
        "a job-wide resource beside select",
        "PBS refuses ncpus, mem and the like for the job where select asks for chunks.",
        "Put the resource into the chunk.",
        "#!/bin/bash\n#PBS -l select=2:ncpus=8\n#PBS -l mem=64gb\n#PBS -l walltime=00:10:00\nmpiexec python t.py\n",
        "#!/bin/bash\n#PBS -l select=2:ncpus=8:mem=64gb\n#PBS -l walltime=00:10:00\nmpiexec python t.py\n",
        _chunks,
        source="PBS Professional User's Guide, 4.2 (chunks and job-wide resources)",
    ),
)
