"""Host memory."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.finding import Edit
from maple_parsl.rules.asking import (
    alone,
    asked,
    cite,
    commands,
    effective,
    kinds,
    option,
    row,
    submitted,
    texts,
    whole,
)
from maple_parsl.rules.base import Family, Found, Subject
from maple_parsl.script.model import Step

_THREE = ("--mem", "--mem-per-cpu", "--mem-per-gpu")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\Z", re.I)
_GIB = {"K": 1 / (1 << 20), "M": 1 / 1024, "": 1 / 1024, "G": 1.0, "T": 1024.0}


def gib(text: str | None) -> float | None:
    """Slurm's sizes in GiB; a bare number counts MiB."""
    match = _SIZE.match((text or "").strip())
    return float(match[1]) * _GIB[match[2].upper()] if match else None


def _ours(subject: Subject) -> bool:
    return subject.site is not None and submitted(subject) and subject.script.scheduler == subject.site.scheduler.kind


def _several(subject: Subject) -> Iterator[Found]:
    if subject.script.scheduler == "slurm":
        given = [d for name in _THREE if (d := subject.script.directive(name)) is not None]
        if len(given) > 1:
            yield Found(f"{' and '.join(d.flag for d in given)} are mutually exclusive", given[-1].place)
    for command in commands(subject, "srun", "sbatch", "salloc"):
        words = texts(command)
        here = [name for name in _THREE if option(words, name) is not None]
        if len(here) > 1:
            yield Found(f"{' and '.join(here)} are mutually exclusive", command.place)


def _unit(subject: Subject) -> Iterator[Found]:
    if subject.script.scheduler != "slurm":
        return
    for name in _THREE:
        directive = subject.script.directive(name)
        if directive is None or not directive.value or directive.variables:
            continue
        if directive.value.isdigit() and 0 < int(directive.value) < 1024:
            yield Found(
                f"{directive.flag}={directive.value} is {directive.value} MiB; a number without a unit counts MiB",
                directive.value_place or directive.place,
                fix=f"Write {directive.value}G if GiB are meant.",
            )


def _more_than_node(subject: Subject) -> Iterator[Found]:
    found = kinds(subject)
    if (
        not _ours(subject)
        or subject.script.scheduler != "slurm"
        or not found
        or any(k.memory_gib is None for k in found)
    ):
        return
    best = max(found, key=lambda k: k.memory_gib or 0)
    most = best.memory_gib or 0
    mem, per_cpu = subject.script.directive("--mem"), subject.script.directive("--mem-per-cpu")
    size = gib(mem.value) if mem and not mem.variables else None
    if mem is not None and size is not None and size > most:
        yield Found(f"--mem={mem.value} is more than a node has ({most:g} GiB)", mem.place, evidence=cite(best))
    each = gib(per_cpu.value) if per_cpu and not per_cpu.variables else None
    tasks, cores = (
        whole(subject.script.directive("--ntasks-per-node")),
        whole(subject.script.directive("--cpus-per-task")),
    )
    if per_cpu is not None and each is not None and tasks and cores and each * tasks * cores > most:
        yield Found(
            f"--mem-per-cpu={per_cpu.value} for {tasks} x {cores} cores is {each * tasks * cores:g} GiB per node;"
            f" a node has {most:g}",
            per_cpu.place,
            evidence=cite(best),
        )


def _not_taken(subject: Subject) -> Iterator[Found]:
    site = subject.site
    if site is None or not _ours(subject) or site.directives.memory != "forbidden":
        return
    for name in _THREE:
        directive = subject.script.directive(name)
        if directive is not None:
            line = directive.place.line
            yield Found(
                f"{directive.flag} is not taken at {site.title}; jobs get all memory of their nodes",
                directive.place,
                evidence=cite(site.directives),
                edits=(Edit(first=line, last=line, text="", safe=True),) if alone(subject, directive) else (),
            )


def _not_asked(subject: Subject) -> Iterator[Found]:
    site = subject.site
    if site is None or not _ours(subject) or site.directives.memory not in ("required", "whole-node"):
        return
    if site.scheduler.kind != "slurm" or asked(subject, *_THREE) is not None:
        return
    queue = subject.queue
    if queue is not None and queue.exclusive:
        return
    yield Found(
        f"no memory is asked for; {site.title} gives a small default per core",
        effective(subject)[-1].place,
        evidence=cite(site.directives),
    )


def _address_space(subject: Subject) -> Iterator[Found]:
    for step in subject.script.steps_of("ulimit"):
        match = re.search(r"-\w*v\w*\s+(\d+)", str(step))
        if match and step.context == "batch" and int(match[1]) < 64 << 20 and subject.script.launches:
            yield Found(
                f"{step} leaves {int(match[1]) / (1 << 20):.3g} GiB of address space to each process",
                step.place,
                edits=_without(subject, step),
            )


def _without(subject: Subject, step: Step) -> tuple[Edit, ...]:
    """The line goes, where the command is all of it."""
    if row(subject, step.place).strip() != str(step):
        return ()
    return (Edit(first=step.place.line, last=step.place.line, text=""),)


_S = "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --time=00:10:00\n"
_DELTA = _S + "#SBATCH --account=demo-delta-gpu\n#SBATCH --partition=gpuA100x4\n#SBATCH --gpus-per-node=4\n"
_VISTA = _S + "#SBATCH --partition=gh\n#SBATCH --ntasks-per-node=1\n"
_SLURM = "https://slurm.schedmd.com/sbatch.html#OPT_mem"
_END = "srun python t.py\n"


_FAMILY = Family("MEMORY")


RULES = (
    _FAMILY.rule(
        "memory-forms-exclusive",
        "error",
        "memory asked for in several ways",
        "--mem, --mem-per-cpu and --mem-per-gpu exclude each other; sbatch refuses the script.",
        "Keep one.",
        _S + "#SBATCH --mem=8G\n#SBATCH --mem-per-cpu=2G\n" + _END,
        _S + "#SBATCH --mem=8G\n" + _END,
        _several,
        source=_SLURM,
    ),
    _FAMILY.rule(
        "memory-unit",
        "warning",
        "memory without a unit",
        "A bare number counts MiB, so that the job is killed at once.",
        "Write the unit.",
        _S + "#SBATCH --mem=64\n" + _END,
        _S + "#SBATCH --mem=64G\n" + _END,
        _unit,
        source=_SLURM,
    ),
    _FAMILY.rule(
        "memory-more-than-node",
        "error",
        "more memory than a node has",
        "No node fits the request.",
        "Ask for less, or --mem=0 for all of a node.",
        _DELTA + "#SBATCH --mem=600G\n" + _END,
        _DELTA + "#SBATCH --mem=200G\n" + _END,
        _more_than_node,
        source="the site's documentation",
        site="delta",
    ),
    _FAMILY.rule(
        "memory-not-taken",
        "error",
        "memory asked for where that is refused",
        "The site's submission filter rejects the script.",
        "Leave the option out.",
        _VISTA + "#SBATCH --mem=100G\nibrun python t.py\n",
        _VISTA + "ibrun python t.py\n",
        _not_taken,
        source="the site's documentation",
        site="vista",
    ),
    _FAMILY.rule(
        "memory-not-asked",
        "warning",
        "no memory asked for where the default is little",
        "The job gets the default per core and is killed when it loads its data or model.",
        "Ask for it; --mem=0 is all of a node.",
        _DELTA + _END,
        _DELTA + "#SBATCH --mem=0\n" + _END,
        _not_asked,
        source="the site's documentation",
        site="delta",
    ),
    _FAMILY.rule(
        "address-space-limited",
        "warning",
        "the address space of processes is limited",
        "Python, torch and GPU drivers reserve far more address space than they use; they stop with MemoryError or"
        " cannot make a device context.",
        "Limit memory with the scheduler's option instead.",
        _S + "ulimit -v 4000000\n" + _END,
        _S + "ulimit -c 0\n" + _END,
        _address_space,
        source="https://man7.org/linux/man-pages/man2/getrlimit.2.html (RLIMIT_AS)",
    ),
)
