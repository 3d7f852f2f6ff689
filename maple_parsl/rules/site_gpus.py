"""GPU requests against what a site's nodes have and how it wants them asked for."""

from __future__ import annotations

from collections.abc import Iterator

from maple_parsl.rules import parts
from maple_parsl.rules.asking import (
    GPU_OPTIONS,
    asked,
    cite,
    effective,
    gpus_of,
    kinds,
    nodes,
    per_node_gpus,
    submitted,
)
from maple_parsl.rules.base import Family, Found, Subject
from maple_parsl.rules.gpu_requests import any_gpu_option
from maple_parsl.script import pbs


def _ours(subject: Subject) -> bool:
    return subject.site is not None and submitted(subject) and subject.script.scheduler == subject.site.scheduler.kind


def _too_many(subject: Subject) -> Iterator[Found]:
    found = kinds(subject)
    if not _ours(subject) or not found or any(k.composed for k in found):
        return
    most = max(k.devices for k in found)
    best = max(found, key=lambda k: k.devices)
    given = per_node_gpus(subject)
    total, number = subject.script.directive("--gpus"), nodes(subject)
    count = gpus_of(total)
    if given is not None and given[0] > most:
        yield Found(
            f"{given[1].flag} asks for {given[0]} GPUs per node; a node ({best.title}) has {most}",
            given[1].value_place or given[1].place,
            evidence=cite(best),
            edits=parts.replace_text(subject, given[1].place, str(given[0]), str(most)),
        )
    elif count is not None and number and total is not None and count > most * number:
        yield Found(
            f"--gpus={count} on {number} nodes; a node ({best.title}) has {most}", total.place, evidence=cite(best)
        )
    request = pbs.request(subject.script) if subject.script.scheduler == "pbs" else None
    for chunk in request.chunks if request and not any(k.select_unit == "gpu" for k in found) else ():
        asked_for = chunk.number("ngpus", "gpus")
        select = asked(subject, "-l select", "-l nodes")
        if asked_for is not None and asked_for > most and select is not None:
            yield Found(
                f"ngpus={asked_for} in a chunk; a node ({best.title}) has {most}", select.place, evidence=cite(best)
            )


def _none_asked(subject: Subject) -> Iterator[Found]:
    site, found = subject.site, kinds(subject)
    if site is None or not _ours(subject) or not found or any(k.gpus == 0 for k in found):
        return
    if not subject.script.launches or site.directives.gpu_request == "none":
        return
    if site.directives.gpu_request == "select-ngpus":
        request = pbs.request(subject.script)
        select = subject.script.directive("-l select")
        if request and select and not select.variables and all("ngpus" not in c.resources for c in request.chunks):
            yield Found(f"select={select.value} asks for no GPU (ngpus)", select.place, evidence=cite(site.directives))
        return
    if not any_gpu_option(subject):
        form = site.directives.gpu_request
        yield Found(
            f"no GPU is asked for; {site.title} takes --{form}",
            effective(subject)[-1].place,
            evidence=cite(site.directives),
        )


def _other_form(subject: Subject) -> Iterator[Found]:
    site, found = subject.site, kinds(subject)
    if site is None or not _ours(subject) or subject.script.scheduler != "slurm" or not found:
        return
    wanted = site.directives.gpu_request
    given = asked(subject, *GPU_OPTIONS)
    if given is None or given.name in site.directives.forbidden:
        return
    if wanted == "none":
        if all(k.gpus for k in found):
            yield Found(
                f"{given.flag} is not needed at {site.title}: jobs get whole nodes with all their GPUs",
                given.place,
                severity="note",
                evidence=cite(site.directives),
            )
        return
    if given.name in ("--gres", "--gpus", "--gpus-per-node") and given.name != f"--{wanted}":
        per_node = {"--gres", "--gpus-per-node"}
        same = given.name in per_node and f"--{wanted}" in per_node
        yield Found(
            f"{given.flag}; {site.title} documents --{wanted}",
            given.place,
            severity="note" if same else "warning",
            evidence=cite(site.directives),
        )
    types = [k.gres_type for k in found]
    if given.name in ("--gres", "--gpus", "--gpus-per-node") and all(types) and given.value and not given.variables:
        bare = given.value.removeprefix("gpu:")
        if bare.isdigit():
            yield Found(
                f"{given.flag}={given.value} names no type of GPU; {site.title} wants one: {', '.join(t for t in types if t)}",
                given.value_place or given.place,
                evidence=cite(site.directives),
            )


def _physical_for_logical(subject: Subject) -> Iterator[Found]:
    found = kinds(subject)
    if not _ours(subject) or not found:
        return
    for ranks in subject.launches:
        kind = found[0]
        if kind.devices <= kind.gpus or any(k.devices != kind.devices for k in found) or ranks.per_node != kind.gpus:
            continue
        leaf = ranks.launch.leaf
        hierarchy = leaf.variable("ZE_FLAT_DEVICE_HIERARCHY")
        if hierarchy is not None and hierarchy.text != "FLAT":
            continue
        yield Found(
            f"{ranks.per_node} processes per node; {kind.title} shows {kind.devices} devices ({kind.gpus} GPUs,"
            " each of several), so the others stay idle",
            ranks.launch.place,
            evidence=cite(kind),
        )


_DELTA = "#!/bin/bash\n#SBATCH --account=demo-delta-gpu\n#SBATCH --partition=gpuA100x4\n#SBATCH --nodes=2\n"
_DELTA += "#SBATCH --ntasks-per-node=4\n#SBATCH --mem=0\n#SBATCH --time=00:10:00\n"
_PSC = "#!/bin/bash\n#SBATCH --partition=GPU\n#SBATCH --nodes=1\n#SBATCH --time=00:10:00\n"
_OLCF = "#!/bin/bash\n#SBATCH --account=demo\n#SBATCH --partition=batch\n#SBATCH --nodes=2\n#SBATCH --time=00:10:00\n"


_FAMILY = Family("GPU_REQUEST", source="the site's documentation")


RULES = (
    _FAMILY.rule(
        "gpus-more-than-node",
        "error",
        "more GPUs per node than a node has",
        "No node fits the request: it is refused, or waits for ever.",
        "Ask for the GPUs of one node.",
        _DELTA + "#SBATCH --gpus-per-node=8\nsrun python t.py\n",
        _DELTA + "#SBATCH --gpus-per-node=4\nsrun python t.py\n",
        _too_many,
        site="delta",
    ),
    _FAMILY.rule(
        "gpus-not-asked",
        "error",
        "no GPU is asked for",
        "Where GPUs are given on request only, the job runs on GPU nodes and sees none.",
        "Ask for GPUs.",
        _DELTA + "srun python t.py\n",
        _DELTA + "#SBATCH --gpus-per-node=4\nsrun python t.py\n",
        _none_asked,
        site="delta",
    ),
    _FAMILY.rule(
        "gpu-request-of-other-site",
        "warning",
        "GPUs asked for in another way than the site documents",
        "Sites set up one way of asking; others are refused or counted otherwise (a total instead of a number"
        " per node, a type that must be named).",
        "Ask as the site documents.",
        _PSC + "#SBATCH --gpus=8\nsrun python t.py\n",
        _PSC + "#SBATCH --gpus=v100-32:8\nsrun python t.py\n",
        _other_form,
        site="bridges2",
    ),
    _FAMILY.rule(
        "devices-left-idle",
        "warning",
        "one process per GPU where each GPU is several devices",
        "On these nodes a framework sees each die or tile as a device of its own; one process per card uses half"
        " of them.",
        "Start one process per device.",
        _OLCF + "srun --ntasks-per-node=4 python t.py\n",
        _OLCF + "srun --ntasks-per-node=8 python t.py\n",
        _physical_for_logical,
        site="frontier",
    ),
)
