"""Which devices a process sees."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.rules.asking import commands, option, texts
from maple_parsl.rules.base import Family, Found, Subject
from maple_parsl.rules.gpu_requests import any_gpu_option
from maple_parsl.script.model import Launch, Place
from maple_parsl.script.rankmap import LaunchRanks
from maple_parsl.script.variables import gres_gpus, typed_count

_LISTS = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
_ALONE = re.compile(r"(?:single:1|per_task:1|closest|map_gpu:.+|mask_gpu:.+|single)\Z")


def _listed(launch: Launch, name: str) -> list[str] | None:
    value = launch.leaf.variable(name)
    text = value.text if value is not None else None
    return [piece.strip() for piece in text.split(",") if piece.strip()] if text else None


def _set_at(launch: Launch, name: str) -> Place | None:
    found = launch.leaf.environment.get(name)
    return found.place if found else None


def _tasks(ranks: LaunchRanks) -> int | None:
    """Processes per node that share the environment of the launch."""
    return ranks.per_node


def _shared_list(subject: Subject) -> Iterator[Found]:
    for ranks in subject.launches:
        for name in _LISTS[:3]:
            devices = _listed(ranks.launch, name)
            if not devices or not all(d.isdigit() for d in devices):
                continue
            each = _tasks(ranks)
            if each is not None and each > len(devices):
                yield Found(
                    f"{name}={','.join(devices)} for {each} processes of a node:"
                    f" {len(devices)} device{'s' if len(devices) > 1 else ''} for all of them",
                    _set_at(ranks.launch, name),
                )
            gpus = subject.ranks.gpus_per_node
            beyond = [d for d in devices if gpus and int(d) >= gpus]
            if beyond and any_gpu_option(subject):
                yield Found(
                    f"{name} names device {beyond[0]}; the job has {gpus} per node, 0 to {(gpus or 1) - 1}",
                    _set_at(ranks.launch, name),
                )


def _none_in_container(subject: Subject) -> Iterator[Found]:
    """The container tools' own word for no device, and a program that trains."""
    for assignment in subject.script.assignments:
        if assignment.name == "NVIDIA_VISIBLE_DEVICES" and assignment.exported and assignment.value.text == "void":
            yield Found("NVIDIA_VISIBLE_DEVICES=void gives containers no GPU driver and no device", assignment.place)


def _two_lists(subject: Subject) -> Iterator[Found]:
    for ranks in subject.launches:
        outer = _listed(ranks.launch, "ROCR_VISIBLE_DEVICES")
        for name in ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
            inner = _listed(ranks.launch, name)
            if not outer or not inner:
                continue
            lost = [d for d in inner if d.isdigit() and int(d) >= len(outer)]
            yield Found(
                f"ROCR_VISIBLE_DEVICES={','.join(outer)} and {name}={','.join(inner)}: the second counts within"
                f" the first" + (f", which has no device {lost[0]}" if lost else ""),
                _set_at(ranks.launch, name),
                severity="error" if lost else "warning",
            )


def _isolated(subject: Subject) -> Iterator[Found]:
    """GPUs per task: each process has one device, number 0, and does not see the others."""
    for ranks in subject.launches:
        launch = ranks.launch
        if (
            launch.launcher != "srun"
            or (ranks.outer_per_node or 2) < 2
            or (ranks.outer_per_node is None and not _many(ranks))
        ):
            continue
        if subject.site is not None and any(facts.one_device_visible for facts in subject.site.launchers.values()):
            continue
        bind = launch.value("gpu_bind")
        directive = subject.script.directive("--gpu-bind")
        bound = (bind.text if bind is not None else directive.value if directive else None) or ""
        if bound.removeprefix("verbose,").startswith("none"):
            continue
        given = launch.option("gpus_per_task")
        asked = subject.script.directive("--gpus-per-task")
        per_task = typed_count(given.value.text) if given else typed_count(asked.value) if asked else None
        words = " ".join(str(w) for w in launch.leaf.program)
        local = re.search(r"local[_-]rank[= ]<per_task", words) is not None
        if per_task == 1:
            place = given.place if given else asked.place if asked else launch.place
            yield Found(
                "--gpus-per-task=1 shows each process one device, number 0"
                + ("; the program is told to use the one of its local rank" if local else
                   "; a program that takes the device of its local rank fails with an invalid device ordinal"),
                place,
                severity="error" if local else None,
            )  # fmt: skip
        elif _ALONE.match(bound.removeprefix("verbose,")):
            option_ = launch.option("gpu_bind")
            yield Found(
                f"--gpu-bind={bound} shows each process only its own device, so that NCCL finds no peers on the node",
                option_.place if option_ else directive.place if directive else launch.place,
            )


def _many(ranks: LaunchRanks) -> bool:
    return bool(ranks.processes and ranks.nodes and ranks.processes > ranks.nodes)


def _step_gpus(launch: Launch) -> int | None:
    """GPUs per node that a step of srun asks for itself."""
    if launch.launcher != "srun":
        return None
    gres, per_node = launch.value("gres"), launch.value("gpus_per_node")
    if gres is not None and gres.text:
        return gres_gpus(gres.text)
    return typed_count(per_node.text) if per_node is not None else None


def _more_tasks_than_gpus(subject: Subject) -> Iterator[Found]:
    if not any_gpu_option(subject):
        return
    for ranks in subject.launches:
        gpus = _step_gpus(ranks.launch) or subject.ranks.gpus_per_node
        if not gpus or ranks.framework or ranks.outer_per_node is None or ranks.outer_per_node <= gpus:
            continue
        if ranks.launch.launcher not in ("srun", "mpiexec", "mpirun", "ibrun") or ranks.launch.leaf.opaque:
            continue
        name = (ranks.launch.leaf.program[0].value.text or "") if ranks.launch.leaf.program else ""
        if not re.match(r"(.*/)?python[\d.]*\Z|.*\.py\Z", name):
            continue
        place = subject.script.directive("--ntasks-per-node") or subject.script.directive("--ntasks")
        yield Found(
            f"{ranks.outer_per_node} processes per node for {gpus} GPUs: those of local rank {gpus} and up have no device",
            place.place if place else ranks.launch.place,
        )


def _per_gpu_copies(subject: Subject) -> Iterator[Found]:
    directive = subject.script.directive("--ntasks-per-gpu")
    if directive is not None and subject.script.scheduler == "slurm":
        yield Found(
            f"--ntasks-per-gpu={directive.value} starts the program once for each GPU, each copy seeing its own",
            directive.place,
        )
        return
    for command in commands(subject, "sbatch", "salloc", "srun"):
        if option(texts(command), "--ntasks-per-gpu") is not None:
            yield Found(
                "--ntasks-per-gpu starts the program once for each GPU, each copy seeing its own", command.place
            )


def _resource_set(subject: Subject) -> Iterator[Found]:
    for launch in subject.script.all_launches:
        if launch.launcher != "jsrun":
            continue
        sets, tasks, gpus = (
            value.number if (value := launch.value(name)) is not None else None
            for name in ("resource_sets", "tasks_per_rs", "gpus_per_rs")
        )
        place = option_.place if (option_ := launch.option("gpus_per_rs")) else launch.place
        if tasks and gpus and tasks > gpus:
            yield Found(f"{tasks} processes in a resource set of {gpus} GPUs", place)
        elif sets == 1 and gpus == 1:
            yield Found("the only resource set has one GPU; the program sees device 0 and no other", place)


_HEAD = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --gpus-per-node=4\n"
_SRUN = "https://slurm.schedmd.com/gres.html#GPU_Management"
_CUDA = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/ (environment variables)"


_FAMILY = Family("GPU_VISIBILITY")


RULES = (
    _FAMILY.rule(
        "visible-devices-shared",
        "error",
        "one fixed device list for more processes than devices",
        "Every process of a node inherits the same list: some find no device of their number, or all take the same.",
        "Leave the variable alone, or set it in each process from its local rank.",
        _HEAD + "export CUDA_VISIBLE_DEVICES=0\nsrun python t.py\n",
        _HEAD + "export CUDA_VISIBLE_DEVICES=3,2,1,0\nsrun python t.py\n",
        _shared_list,
        source=_CUDA,
    ),
    _FAMILY.rule(
        "visible-devices-twice",
        "warning",
        "two device lists, one within the other",
        "HIP and CUDA lists count among the devices that ROCR_VISIBLE_DEVICES leaves.",
        "Set one of them.",
        _HEAD + "export ROCR_VISIBLE_DEVICES=2,3\nexport HIP_VISIBLE_DEVICES=2,3\nsrun -n 2 python t.py\n",
        _HEAD + "export ROCR_VISIBLE_DEVICES=3,2,1,0\nsrun python t.py\n",
        _two_lists,
        source="https://rocm.docs.amd.com/en/latest/conceptual/gpu-isolation.html",
    ),
    _FAMILY.rule(
        "device-isolated",
        "warning",
        "each process sees only its own device",
        "With GPUs dealt per task a process has one device, number 0; peers on the node are hidden, so that"
        " cuda:LOCAL_RANK is invalid and NCCL cannot use direct copies.",
        "Use --gpus-per-node and --gpu-bind=none and choose by local rank; or always use device 0.",
        "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --gpus-per-task=1\nsrun python t.py\n",
        _HEAD + "srun --gpu-bind=none python t.py\n",
        _isolated,
        source="https://github.com/NVIDIA/nccl/issues/1066; " + _SRUN,
    ),
    _FAMILY.rule(
        "more-processes-than-gpus",
        "error",
        "more processes per node than GPUs",
        "The processes beyond the last GPU stop with an invalid device ordinal, or share one.",
        "Start one process per GPU.",
        "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=8\n#SBATCH --gpus-per-node=4\nsrun python t.py\n",
        _HEAD + "srun python t.py\n",
        _more_tasks_than_gpus,
        source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/communicators.html (one device per rank)",
    ),
    _FAMILY.rule(
        "copies-per-gpu",
        "warning",
        "tasks counted from GPUs",
        "--ntasks-per-gpu multiplies the tasks and binds each to its GPU; a program that manages several GPUs itself"
        " runs several times with one each.",
        "State the number of tasks.",
        "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gpus=2\n#SBATCH --ntasks-per-gpu=1\nsrun python t.py\n",
        "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gpus=2\n#SBATCH --ntasks=1\nsrun python t.py\n",
        _per_gpu_copies,
        source=_SRUN,
    ),
    _FAMILY.rule(
        "resource-set-gpus",
        "warning",
        "a resource set without the GPUs its processes use",
        "jsrun shows processes the GPUs of their resource set only.",
        "Give the set all GPUs its processes use.",
        "#!/bin/bash\n#BSUB -nnodes 1\n#BSUB -W 10\njsrun -n 1 -a 1 -g 1 python t.py\n",
        "#!/bin/bash\n#BSUB -nnodes 1\n#BSUB -W 10\njsrun -n 1 -a 6 -g 6 python t.py\n",
        _resource_set,
        source="https://docs.olcf.ornl.gov/systems/summit_user_guide.html#job-launcher-jsrun",
    ),
    _FAMILY.rule(
        "container-without-devices",
        "warning",
        "containers are told to have no GPU",
        "void tells the container tools to leave the GPUs and the driver out; some sites set it again per step.",
        "Remove it, or name the devices (all).",
        _HEAD + "export NVIDIA_VISIBLE_DEVICES=void\nsrun --container-image=i.sqsh python t.py\n",
        _HEAD + "export NVIDIA_VISIBLE_DEVICES=all\nsrun --container-image=i.sqsh python t.py\n",
        _none_in_container,
        source="https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html",
    ),
)
