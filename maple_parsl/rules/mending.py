"""Edits that several rules share: variables expanded in each process, launches taken to every node."""

from __future__ import annotations

import re

from maple_parsl.finding import Edit
from maple_parsl.rules import parts
from maple_parsl.rules.base import Subject
from maple_parsl.script.model import Launch, Place
from maple_parsl.script.variables import PER_TASK

_SHELL = re.compile(r'\b(?:ba)?sh\s+(?:-\w+\s+)*-\w*c\s+"')
_OWN = re.compile(r"(?<!\\)\$(?=\{?(?:" + "|".join(sorted(PER_TASK)) + r")\b)")
_NOT_PLAIN = re.compile(r"""["'`\\|;&<>#]|\$\(""")
FIRST_NODE = 'scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1'


def row_of(subject: Subject, place: Place) -> str | None:
    """The line of a place, where a whole command stands on it."""
    if place.file or not 0 < place.line <= len(subject.lines):
        return None
    row = subject.lines[place.line - 1]
    before = subject.lines[place.line - 2].rstrip() if place.line > 1 else ""
    return None if row.rstrip().endswith("\\") or before.endswith("\\") else row


def in_each_process(subject: Subject, launch: Launch, place: Place) -> tuple[Edit, ...]:
    """Variables of a task, expanded by the batch shell, are left for a shell of the task."""
    row = row_of(subject, place)
    if row is None or place.line != launch.place.line:
        return ()
    if _SHELL.search(row) and row.count('"') == 2:
        new = _OWN.sub(r"\\$", row)
    else:
        begin = _begin_of_program(launch, row)
        if begin is None:
            return ()
        rest = row[begin:]
        if _NOT_PLAIN.search(rest):
            return ()
        escaped = _OWN.sub(r"\\$", rest)
        new = row[:begin] + f'bash -c "{escaped}"'
    return (Edit(first=place.line, last=place.line, text=new),) if new != row else ()


def _begin_of_program(launch: Launch, row: str) -> int | None:
    """Where in its line the command stands that a launcher starts."""
    inner = parts.framework_of(launch)
    if inner is not None and inner is not launch:
        found = re.compile(rf"(?<=\s){re.escape(inner.launcher)}(?=\s)").search(row, launch.place.column)
        return found.start() if found else None
    first = launch.program[0].place if launch.program else None
    return first.column - 1 if first is not None and first.line == launch.place.line else None


def once_per_node(subject: Subject, place: Place, name: str) -> tuple[Edit, ...]:
    """A launcher of one process per node (at ``place``) is started by srun on every node of the job."""
    row = row_of(subject, place)
    if row is None or subject.script.scheduler != "slurm" or not row[place.column - 1 :].startswith(name):
        return ()
    start = "srun --nodes=$SLURM_NNODES --ntasks=$SLURM_NNODES --ntasks-per-node=1 "
    new = row[: place.column - 1] + start + row[place.column - 1 :]
    return (Edit(first=place.line, last=place.line, text=new),)


def told_of_all_nodes(subject: Subject, launch: Launch, inner: Launch) -> tuple[Edit, ...]:
    """torchrun under srun is told the job's nodes, and to meet at the address that the script sets."""
    row = row_of(subject, launch.place)
    names = ("MASTER_ADDR", "MASTER_PORT")
    if row is None or inner.launcher != "torchrun" or subject.script.scheduler != "slurm" or launch.launcher != "srun":
        return ()
    if not all(subject.script.assigned(name) for name in names):
        return ()
    at = _begin_of_program(launch, row)
    if at is None or any(inner.option(name) for name in ("rdzv_backend", "rdzv_endpoint", "rdzv_id", "master_addr")):
        return ()
    end = at + len("torchrun")
    where = "--rdzv_backend=c10d --rdzv_id=$SLURM_JOB_ID --rdzv_endpoint=$MASTER_ADDR:$MASTER_PORT"
    new = f"{row[:end]} --nnodes=$SLURM_NNODES {where}{row[end:]}"
    return (Edit(first=launch.place.line, last=launch.place.line, text=new),)
