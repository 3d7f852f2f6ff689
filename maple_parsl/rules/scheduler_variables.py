"""Scheduler variables read as if they had another form."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.finding import Edit, Severity
from maple_parsl.rules import mending, parts
from maple_parsl.rules.base import Found, Rule, Subject
from maple_parsl.script.model import Reference

_TYPED = ("SLURM_GPUS_PER_NODE", "SLURM_GPUS", "SLURM_GPUS_PER_TASK", "SLURM_GPUS_PER_SOCKET")
_SHORT = ("SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE")
_LISTS = ("SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_STEP_NODELIST")
_OPTION = {
    "SLURM_NTASKS": "--ntasks or --ntasks-per-node", "SLURM_NPROCS": "--ntasks or --ntasks-per-node",
    "SLURM_NTASKS_PER_NODE": "--ntasks-per-node", "SLURM_CPUS_PER_TASK": "--cpus-per-task",
    "SLURM_GPUS_PER_NODE": "--gpus-per-node", "SLURM_GPUS_PER_TASK": "--gpus-per-task", "SLURM_GPUS": "--gpus",
}  # fmt: skip
_STRIPS = ("%", "#", "/", ":", "^", ",", "@")
_SAFE = (":-", "-", ":+", "+", ":?", "?", ":=", "=")
_PRINTS = frozenset("echo printf cat log logger [ test [[ : export-list".split())
_HEAD = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n"
_TORCH = "srun --ntasks-per-node=1 torchrun --standalone {} train.py\n"


def _read(subject: Subject, *names: str) -> Iterator[Reference]:
    seen: set[tuple[int, int]] = set()
    for name in names:
        for reference in subject.script.references(name):
            if reference.context in ("batch", "task") and parts.once(seen, reference.place):
                yield reference


def _row(subject: Subject, reference: Reference) -> str:
    line = reference.place.line
    return subject.lines[line - 1][:2000] if 0 < line <= len(subject.lines) and not reference.place.file else ""


def _prints(subject: Subject, reference: Reference) -> bool:
    row = _row(subject, reference)
    return reference.command in _PRINTS and "|" not in row and "$(" not in row


def _typed(subject: Subject) -> Iterator[Found]:
    said: set[str] = set()
    for reference in _read(subject, *_TYPED):
        if reference.assigned or reference.operator.startswith((*_STRIPS, *_SAFE)) or _prints(subject, reference):
            continue
        row = _row(subject, reference)
        if re.search(r"\b(?:sed|grep|awk|cut|tr)\b|%%|##|//", row):
            continue
        text = reference.value.text
        unset = reference.value.has("unset")
        if unset and reference.context == "task":
            continue
        fix = "SLURM_GPUS_ON_NODE"
        if reference.name in said:
            continue
        severity: Severity
        edits = parts.replace_text(subject, reference.place, reference.name, fix) if reference.name == _TYPED[0] else ()
        option = "--" + reference.name[6:].lower().replace("_", "-")
        if text is not None and not text.isdigit():
            message, severity = f"{reference.name} repeats the request as written, {text}, which is no number", "error"
        elif unset and subject.script.directives:
            message, severity = (
                f"{reference.name} exists only where the job asks with {option}, which it does not",
                "error",
            )
        else:
            said.add(reference.name)
            message, severity = (
                f"{reference.name} repeats {option} as written: with a type (a100:4) it is no number",
                "note",
            )
        yield Found(message, reference.place, severity=severity, edits=edits, fix=f"use {fix}")


def _shortened(subject: Subject) -> Iterator[Found]:
    for reference in _read(subject, *_SHORT):
        if reference.assigned or reference.operator.startswith(_STRIPS) or _prints(subject, reference):
            continue
        row = _row(subject, reference)
        if re.search(r"\b(?:sed|grep|awk|cut|tr|python3? -c)\b", row) or re.search(r"IFS=|=~", row):
            continue
        if subject.ranks.job_nodes == 1:
            continue
        text = reference.value.text
        yield Found(
            f"{reference.name} is of the form {text or '4(x2)'} where nodes are alike, which is no number",
            reference.place,
            severity="error" if (text and "(" in text) or parts.fewest_nodes(subject) > 1 else "warning",
            fix="SLURM_NTASKS_PER_NODE, or SLURM_NTASKS / SLURM_NNODES",
        )


def _first_host(subject: Subject, reference: Reference, row: str) -> tuple[Edit, ...]:
    """``NAME=$SLURM_JOB_NODELIST`` for a host: the first of the list instead."""
    whole = re.search(r'=("?)\$\{?' + reference.name + r"\}?\1(?=\s*$)", row)
    return parts.replace_text(subject, reference.place, whole[0], f"=$({mending.FIRST_NODE})") if whole else ()


def _nodelist(subject: Subject) -> Iterator[Found]:
    one = subject.ranks.job_nodes == 1
    assigned = {a.name: a for a in subject.script.assignments if a.value.is_a("nodelist", "loop") or a.how == "loop"}
    for reference in _read(subject, *_LISTS):
        row = _row(subject, reference)
        command = reference.command
        if re.search(
            r"scontrol|nodeset|scluster|hostlist|expand|python|-w\b|--nodelist|--hostlist|clush|pdsh|sed.*\[", row
        ):
            continue
        loop = re.search(r"\bfor\s+\w+\s+in\b[^;]*" + reference.name, row)
        cut = re.search(reference.name + r".*\b(?:cut|awk|head|tr|sed)\b", row)
        stripped = reference.operator.startswith(("%", "/", "#", ":0"))
        host = next(
            (
                a
                for a in assigned.values()
                if a.place.line == reference.place.line and re.search("ADDR|HOST_?NAME|HEAD|RDZV", a.name)
            ),
            None,
        )
        cut = cut or re.search(r"\b(?:read|readarray|mapfile)\b.*<<<.*" + reference.name, row)
        endpoint = reference.launcher and re.search(r"(?:endpoint|master_addr|master-addr|process_ip)[= ]", row)
        if not (loop or cut or stripped or host or endpoint) or command in ("test", "["):
            continue
        yield Found(
            f"{reference.name} is of the form gpu[01-04], which the shell does not expand",
            reference.place,
            severity="note" if one else "error",
            fix=f'scontrol show hostnames "${reference.name}"',
            edits=_first_host(subject, reference, row),
        )


def _lines(subject: Subject) -> Iterator[Found]:
    shape = parts.shape(subject)
    ranks = shape.per_node if subject.script.scheduler == "pbs" else None
    if ranks == 1 or (ranks is None and shape.request is not None):
        return  # one line for each chunk
    seen: set[tuple[int, int]] = set()
    for launch in subject.script.all_launches:
        for option in launch.options:
            wants = option.name == "nnodes" or (
                option.name == "ntasks" and parts.number(launch, "ntasks_per_node") == 1
            )
            if wants and option.value.has("task_slots") and parts.once(seen, option.place):
                yield Found(
                    f"{option.flag} counts the lines of the node file, which holds each host once per process"
                    + (f" ({ranks} times here)" if ranks else ""),
                    option.place,
                    severity="error" if ranks else "warning",
                    fix='sort -u "$PBS_NODEFILE" | wc -l',
                )
    counted = [a.name for a in subject.script.assignments if a.value.has("task_slots")]
    for launch in subject.script.launches:
        total = launch.option("ntasks")
        symbol = total.value.symbol if total else None
        if (
            total is None
            or symbol is None
            or symbol.kind not in ("number", "task_slots")
            or not parts.number(launch, "ntasks_per_node")
        ):
            continue
        if not symbol.derived:
            continue
        if any(re.search(rf"\b{name}\b", symbol.detail) for name in counted) and parts.once(seen, total.place):
            yield Found(
                f"{total.flag} multiplies the lines of the node file, which holds each host once per process",
                total.place,
                severity="error" if ranks else "warning",
                fix='sort -u "$PBS_NODEFILE" | wc -l',
            )
    for assignment in subject.script.assignments:
        if re.search(r"N?NODES\Z|NUM_?NODES|NHOSTS", assignment.name, re.I) and assignment.value.has("task_slots"):
            if any(True for _ in seen):
                return
            if parts.once(seen, assignment.place):
                yield Found(
                    f"{assignment.name} counts the lines of the node file, which holds each host once per process",
                    assignment.place,
                    severity="error" if ranks else "note",
                    fix='sort -u "$PBS_NODEFILE" | wc -l',
                )


def _unset(subject: Subject) -> Iterator[Found]:
    if subject.script.scheduler != "slurm" or not parts.has_directives(subject):
        return
    said: set[str] = set()
    for reference in _read(subject, *_OPTION):
        if reference.name in said or reference.assigned or reference.context != "batch":
            continue
        if not reference.value.has("unset") or reference.operator.startswith(_SAFE) or _prints(subject, reference):
            continue
        if reference.name in _TYPED and not reference.operator.startswith(_STRIPS):
            continue  # another rule
        said.add(reference.name)
        yield Found(
            f"{reference.name} is set only where the job asks with {_OPTION[reference.name]}, which it does not:"
            " it is empty here",
            reference.place,
            fix=f"add {_OPTION[reference.name].split(' ')[0]}, or ${{{reference.name}:-1}}",
        )


def _lsf(subject: Subject) -> Iterator[Found]:
    for reference in _read(subject, "LSB_HOSTS"):
        yield Found("LSB_HOSTS is left empty when it would be longer than 4096 characters", reference.place,
                    fix="read the file $LSB_DJOB_RANKFILE or $LSB_DJOB_HOSTFILE")  # fmt: skip
        return


def _uniq(subject: Subject) -> Iterator[Found]:
    for reference in _read(subject, "PBS_NODEFILE", "COBALT_NODEFILE"):
        row = _row(subject, reference)
        select = subject.script.directive("-l select") or subject.script.directive("-l nodes")
        in_turns = select is None or "+" in (select.value or "")  # chunks of one kind: equal lines are neighbours
        if in_turns and re.search(r"\buniq\b", row) and not re.search(r"\bsort\b", row):
            yield Found("uniq leaves equal lines out only where they are neighbours", reference.place)
            return


RULES = (
    Rule(
        id="gpu-variable-typed", fault_class="SCHED_ENV_PARSE", severity="error",
        title="a GPU request read as a number",
        why="SLURM_GPUS_PER_NODE and its like repeat the option as it was written (a100:4), and are unset without it.",
        source="https://slurm.schedmd.com/sbatch.html (output environment variables)",
        fix="SLURM_GPUS_ON_NODE is always a number.",
        bad=_HEAD + "#SBATCH --gpus-per-node=a100:4\n" + _TORCH.format("--nproc-per-node=$SLURM_GPUS_PER_NODE"),
        good=_HEAD + "#SBATCH --gpus-per-node=a100:4\n" + _TORCH.format("--nproc-per-node=$SLURM_GPUS_ON_NODE"),
        check=_typed,
    ),
    Rule(
        id="count-variable-shortened", fault_class="SCHED_ENV_PARSE", severity="error",
        title="a count in the form 4(x2) read as a number",
        why="SLURM_TASKS_PER_NODE and SLURM_JOB_CPUS_PER_NODE list all nodes, shortened: 4(x2), or 4,3.",
        source="https://slurm.schedmd.com/sbatch.html (SLURM_TASKS_PER_NODE)",
        fix="SLURM_NTASKS_PER_NODE.",
        bad=_HEAD + "export WORLD_SIZE=$((SLURM_NNODES * SLURM_TASKS_PER_NODE))\nsrun python train.py\n",
        good=_HEAD + "export WORLD_SIZE=$SLURM_NTASKS\nsrun python train.py\n", check=_shortened,
    ),
    Rule(
        id="nodelist-unexpanded", fault_class="SCHED_ENV_PARSE", severity="error",
        title="the short node list read as host names",
        why="SLURM_JOB_NODELIST is gpu[01-04]; cut at commas or looped over it gives no host name.",
        source="https://slurm.schedmd.com/scontrol.html (show hostnames)",
        fix="scontrol show hostnames.",
        bad=_HEAD + "export MASTER_ADDR=$(echo $SLURM_JOB_NODELIST | cut -d, -f1)\nsrun python train.py\n",
        good=_HEAD + "export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\n"
        "srun python train.py\n",
        check=_nodelist,
    ),
    Rule(
        id="node-file-lines", fault_class="SCHED_ENV_PARSE", severity="warning",
        title="lines of the node file taken for nodes",
        why="The node file names each host mpiprocs times.",
        source="https://2021.help.altair.com/2021.1.2/PBS%20Professional/PBSUserGuide2021.1.2.pdf (PBS_NODEFILE)",
        fix="Count different lines.",
        bad="#!/bin/bash\n#PBS -l select=2:ncpus=64:mpiprocs=4:ngpus=4\nNNODES=$(wc -l < $PBS_NODEFILE)\n"
        "mpiexec -n $((NNODES * 4)) --ppn 4 python train.py\n",
        good="#!/bin/bash\n#PBS -l select=2:ncpus=64:mpiprocs=4:ngpus=4\nNNODES=$(sort -u $PBS_NODEFILE | wc -l)\n"
        "mpiexec -n $((NNODES * 4)) --ppn 4 python train.py\n",
        check=_lines,
    ),
    Rule(
        id="scheduler-variable-unset", fault_class="SCHED_ENV_PARSE", severity="warning",
        title="a variable that Slurm does not set here",
        why="Slurm sets SLURM_NTASKS, SLURM_CPUS_PER_TASK and the like only where the option is given.",
        source="https://slurm.schedmd.com/sbatch.html (output environment variables)",
        fix="Give the option, or a default.",
        bad="#!/bin/bash\n#SBATCH --nodes=2\nexport OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK\nsrun python train.py\n",
        good="#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --cpus-per-task=8\nexport OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK\n"
        "srun -c 8 python train.py\n",
        check=_unset,
    ),
    Rule(
        id="lsb-hosts-empty", fault_class="SCHED_ENV_PARSE", severity="warning",
        title="LSB_HOSTS on large jobs",
        why="LSF leaves LSB_HOSTS empty when the list is long.",
        source="https://github.com/Lightning-AI/pytorch-lightning/issues/10216",
        fix="Read LSB_DJOB_RANKFILE.",
        bad="#!/bin/bash\n#BSUB -nnodes 2\nexport MASTER_ADDR=$(echo $LSB_HOSTS | cut -d' ' -f2)\njsrun python t.py\n",
        good="#!/bin/bash\n#BSUB -nnodes 2\nexport MASTER_ADDR=$(sed -n 2p $LSB_DJOB_RANKFILE)\njsrun python t.py\n",
        check=_lsf,
    ),
    Rule(
        id="uniq-without-sort", fault_class="SCHED_ENV_PARSE", severity="note",
        title="uniq on an unsorted node file",
        why="Hosts may come in turns (a b a b), and uniq leaves those as they are.",
        source="https://man7.org/linux/man-pages/man1/uniq.1.html (adjacent lines)",
        fix="sort -u, or awk '!seen[$1]++' to keep the order.",
        bad="#!/bin/bash\n#PBS -l select=1:ncpus=8+2:ncpus=4\nN=$(uniq $PBS_NODEFILE | wc -l)\nmpiexec -n $N --ppn 1 python t.py\n",
        good="#!/bin/bash\n#PBS -l select=2\nN=$(sort -u $PBS_NODEFILE | wc -l)\nmpiexec -n $N --ppn 1 python t.py\n",
        check=_uniq,
    ),
)  # fmt: skip
