"""Cores, threads and binding against the node and the devices."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.rules import parts
from maple_parsl.rules.base import Found, Rule, Subject
from maple_parsl.script import pbs
from maple_parsl.script.model import Option

_HEAD = "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=4\n"
_POLARIS = "#!/bin/bash -l\n#PBS -l select=2:system=polaris\n#PBS -A demo\n#PBS -q debug\n"


def cpu_set(text: str) -> frozenset[int]:
    """``0-3,8`` as numbers."""
    found: set[int] = set()
    for piece in text.split(","):
        match = re.match(r"(\d{1,4})(?:-(\d{1,4}))?\Z", piece.strip())
        if match:
            found.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return frozenset(found)


def _node_too_small(subject: Subject) -> Iterator[Found]:
    kind = subject.ranks.kind
    limit = (kind.hw_threads or kind.cores) if kind is not None else None
    if limit is None:
        return
    shape = parts.shape(subject)
    directive = subject.script.directive("--cpus-per-task") if subject.script.scheduler == "slurm" else None
    if directive is not None and directive.number and shape.per_node and directive.number * shape.per_node > limit:
        yield Found(
            f"{shape.per_node} tasks x {directive.number} cores = {shape.per_node * directive.number} per node,"
            f" which has {limit}",
            directive.place,
            fix=f"at most --cpus-per-task={limit // shape.per_node}",
            edits=parts.replace_text(
                subject,
                directive.place,
                f"{directive.flag}={directive.value}",
                f"{directive.flag}={limit // shape.per_node}",
            ),
        )
        return
    for ranks in subject.launches:
        option = ranks.launch.option("cpus_per_task")
        each = option.value.number if option else None
        if option is None or each is None or ranks.outer_per_node is None or directive is not None:
            continue
        if each * ranks.outer_per_node > limit:
            yield Found(
                f"{ranks.outer_per_node} processes x {each} cores do not fit a node of {limit}", option.place,
                fix=f"at most {limit // ranks.outer_per_node}",
            )  # fmt: skip


def _step_too_large(subject: Subject) -> Iterator[Found]:
    shape = parts.shape(subject)
    script = subject.script
    if script.scheduler == "slurm":
        each = shape.cpus_per_task
        held = each * shape.per_node if each and shape.per_node else None
        if script.directive("--exclusive") is not None:
            held = None
    else:
        request = pbs.request(script) if script.scheduler == "pbs" else None
        held = request.chunks[0].number("ncpus", "ppn") if request and len(request.chunks) == 1 else None
        if subject.ranks.kind is not None and subject.ranks.kind.select_unit == "gpu":
            return
    for ranks in subject.launches:
        option = ranks.launch.option("cpus_per_task")
        wanted = option.value.number if option else None
        if option is None or wanted is None or held is None or ranks.outer_per_node is None:
            continue
        if wanted * ranks.outer_per_node > held:
            yield Found(
                f"{ranks.outer_per_node} processes x {wanted} cores per node, and the job asks for {held}",
                option.place,
                severity="error" if script.scheduler == "slurm" else "warning",
            )


def _list_binding(subject: Subject) -> Iterator[tuple[Option, list[str], int | None]]:
    for ranks in subject.launches:
        option = ranks.launch.option("cpu_bind")
        text = option.value.text if option else None
        if option is not None and text and text.startswith("list:"):
            yield option, text[5:].split(":"), ranks.outer_per_node


def _list_commas(subject: Subject) -> Iterator[Found]:
    for option, groups, each in _list_binding(subject):
        cpus = groups[0].split(",")
        if len(groups) == 1 and len(cpus) > 1 and each is not None and each > 1:
            row = ":".join(cpus)
            yield Found(
                f"commas join the cores of one process: all {each} get the same set {groups[0]}",
                option.value_place,
                fix=f"colons separate processes: list:{row}",
                edits=parts.replace_text(subject, option.value_place, f"list:{groups[0]}", f"list:{row}")
                if len(cpus) == each
                else (),
            )
        elif len(groups) > 1 and each is not None and len(groups) < each:
            yield Found(f"the list has {len(groups)} entries for {each} processes per node", option.value_place)


def _overlap(subject: Subject) -> Iterator[Found]:
    for option, groups, each in _list_binding(subject):
        sets = [cpu_set(g) for g in groups[: each or None]]
        shared = next((a & b for i, a in enumerate(sets) for b in sets[i + 1 :] if a & b), None)
        if shared:
            yield Found(f"core {min(shared)} is given to two processes", option.value_place)


def _order(subject: Subject) -> Iterator[Found]:
    kind = subject.ranks.kind
    if kind is None or not kind.device_map or subject.site is None:
        return
    near = [cpu_set(d.cores) for d in kind.device_map]
    if len({frozenset(n) for n in near}) < 2:
        return
    if any(w.kind in ("affinity", "script") for r in subject.launches for p in r.launch.all for w in p.wrappers) or any(
        made.how != "unset"
        and made.name.endswith(("VISIBLE_DEVICES", "AFFINITY_MASK"))
        and made.name.isupper()
        and not made.name.startswith("MAPLE_")
        for made in subject.script.assignments
    ):
        return
    for option, groups, each in _list_binding(subject):
        sets = [cpu_set(g) for g in groups]
        if each != len(near) or len(sets) != len(near):
            continue
        wrong = [i for i, cores in enumerate(sets) if cores and not cores & near[i]]
        if wrong:
            turned = all(cores <= near[len(near) - 1 - i] for i, cores in enumerate(sets))
            order = ":".join(d.cores for d in kind.device_map)
            yield Found(
                f"process {wrong[0]} is bound to {groups[wrong[0]]}, and device {wrong[0]} is next to"
                f" {kind.device_map[wrong[0]].cores}" + (": the order is reversed" if turned else ""),
                option.value_place,
                fix=f"list:{order}",
                edits=parts.replace_text(subject, option.value_place, ":".join(groups), order),
            )
    for ranks in subject.launches:
        stated = ranks.launch.option("cpu_bind")
        bind, depth = ranks.launch.value("cpu_bind"), parts.number(ranks.launch, "cpus_per_task")
        if bind is None or bind.text != "depth" or depth is None or ranks.outer_per_node != len(near):
            continue
        blocks = [frozenset(range(i * depth, (i + 1) * depth)) for i in range(len(near))]
        far = [i for i, cores in enumerate(blocks) if not cores & near[i]]
        if far:
            yield Found(
                f"depth binding puts process {far[0]} on cores {min(blocks[far[0]])}-{max(blocks[far[0]])}, and device"
                f" {far[0]} is next to {kind.device_map[far[0]].cores}",
                stated.value_place if stated else ranks.launch.place,
                severity="note",
                fix=f"--cpu-bind list:{':'.join(d.cores for d in kind.device_map)}",
            )


def _threads(subject: Subject) -> Iterator[Found]:
    shape = parts.shape(subject)
    for ranks in subject.launches:
        variable = ranks.launch.leaf.environment.get("OMP_NUM_THREADS")
        threads = variable.value.number if variable else None
        if variable is None or threads is None or not parts.stepped(ranks.launch):
            continue
        cores = ranks.cores or (shape.cpus_per_task if ranks.launch.launcher == "srun" else None)
        inner = ranks.inner_per_node
        if cores and inner and threads * inner > cores and threads > 1:
            yield Found(
                f"OMP_NUM_THREADS={threads}"
                + (f" in each of {inner} processes" if inner > 1 else "")
                + f", and {'they have' if inner > 1 else 'a process has'} {cores} core{'s' if cores > 1 else ''}",
                variable.place,
                fix=f"OMP_NUM_THREADS={max(1, cores // inner)}",
            )
            return


RULES = (
    Rule(
        id="cores-exceed-node", fault_class="CPU_GEOMETRY", severity="error",
        title="more cores than a node has",
        why="Tasks per node times cores per task must fit the node, or the job is refused or spread over more nodes.",
        source="https://slurm.schedmd.com/sbatch.html (--cpus-per-task)",
        fix="Fewer cores per task.",
        bad="#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=8\n#SBATCH --cpus-per-task=32\n"
        "srun -c 32 python train.py\n",
        good="#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=8\n#SBATCH --cpus-per-task=7\n"
        "srun -c 7 python train.py\n",
        check=_node_too_small, needs_site=True, site="frontier",
    ),
    Rule(
        id="step-cores-exceed-job", fault_class="CPU_GEOMETRY", severity="error",
        title="a step wants more cores than the job asks for",
        why="The step waits or is refused: 'More processors requested than permitted'.",
        source="https://slurm.schedmd.com/srun.html (--cpus-per-task)",
        fix="The same number in both places.",
        bad=_HEAD + "#SBATCH --cpus-per-task=8\nsrun --cpus-per-task=16 python train.py\n",
        good=_HEAD + "#SBATCH --cpus-per-task=16\nsrun --cpus-per-task=16 python train.py\n", check=_step_too_large,
    ),
    Rule(
        id="binding-list-commas", fault_class="CPU_GEOMETRY", severity="warning",
        title="a binding list separated by commas",
        why="In --cpu-bind list a colon separates processes and a comma the cores of one process.",
        source="https://docs.alcf.anl.gov/aurora/running-jobs-aurora/ (binding with list)",
        fix="Separate processes by colons.",
        bad=_POLARIS + "mpiexec -n 8 --ppn 4 --cpu-bind list:0,8,16,24 python train.py\n",
        good=_POLARIS + "mpiexec -n 8 --ppn 4 --cpu-bind list:24:16:8:0 python train.py\n", check=_list_commas,
    ),
    Rule(
        id="binding-overlaps", fault_class="CPU_GEOMETRY", severity="warning",
        title="two processes on one core",
        why="Processes bound to the same core slow each other down.",
        source="https://docs.alcf.anl.gov/aurora/running-jobs-aurora/ (binding with list)",
        fix="Give each its own cores.",
        bad=_POLARIS + "mpiexec -n 8 --ppn 4 --cpu-bind list:0-8:8-15:16-23:24-31 python train.py\n",
        good=_POLARIS + "mpiexec -n 8 --ppn 4 --cpu-bind list:0-7:8-15:16-23:24-31 python train.py\n", check=_overlap,
    ),
    Rule(
        id="binding-order", fault_class="CPU_GEOMETRY", severity="warning",
        title="processes bound far from their devices",
        why="On some nodes the first device hangs on the last cores; bound the other way round, all traffic crosses"
        " the node.",
        source="https://docs.alcf.anl.gov/polaris/hardware-overview/machine-overview/ (GPU affinity)",
        fix="Bind in the order of the devices.",
        bad=_POLARIS + "mpiexec -n 8 --ppn 4 --cpu-bind list:0-7:8-15:16-23:24-31 python train.py\n",
        good=_POLARIS + "mpiexec -n 8 --ppn 4 --cpu-bind list:24-31:16-23:8-15:0-7 python train.py\n",
        check=_order, needs_site=True, site="polaris",
    ),
    Rule(
        id="threads-exceed-cores", fault_class="CPU_GEOMETRY", severity="warning",
        title="more threads than cores",
        why="More OpenMP threads than cores wait for each other.",
        source="https://docs.pytorch.org/docs/stable/notes/cpu_threading_torchscript_inference.html",
        fix="At most the cores of a process.",
        bad=_HEAD + "export OMP_NUM_THREADS=16\nsrun -c 8 python train.py\n",
        good=_HEAD + "export OMP_NUM_THREADS=8\nsrun -c 8 python train.py\n", check=_threads,
    ),
)  # fmt: skip
