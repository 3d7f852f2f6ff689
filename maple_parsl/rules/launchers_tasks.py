"""Tasks of a step against the devices, the trainer's own settings, and launchers inside the step."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.rules import parts
from maple_parsl.rules.base import Found, Rule, Subject
from maple_parsl.script.model import Launch
from maple_parsl.script.rankmap import LaunchRanks

_SPAWN = re.compile(r"(?:ddp_|fsdp_)?(?:spawn|fork|notebook)\Z")
_HEAD = "#!/bin/bash\n#SBATCH --nodes=2\n"


def _runner_on_every_node(subject: Subject) -> Iterator[Found]:
    for ranks in subject.launches:
        inner = parts.framework_of(ranks.launch)
        if inner is None or inner is ranks.launch or ranks.launch.launcher in ("ssh", "pdsh"):
            continue
        if inner.launcher == "deepspeed":
            if inner.option("no_ssh") or _tasks(ranks) == 1:
                continue
            nodes = parts.number(inner, "nnodes")
            if not (inner.option("hostfile") or (nodes or 1) > 1 or inner.option("include")):
                continue
        elif inner.launcher == "horovodrun":
            wanted = parts.number(inner, "ntasks")
            tasks = _tasks(ranks)
            if tasks == 1 and (inner.option("gloo") or wanted == 1):
                continue
            if tasks == 1:
                yield Found(
                    f"horovodrun wants {wanted or 'several'} processes inside a step of one task:"
                    " its MPI sees a single slot there",
                    inner.place,
                    fix="start horovodrun without srun, or srun one task per device without horovodrun",
                )
                continue
        else:
            continue
        yield Found(
            f"{inner.launcher} reaches every host itself, and {ranks.launch.launcher} starts it on each of them:"
            " every copy tries to start all processes",
            inner.place,
            fix=f"run {inner.launcher} once, without {ranks.launch.launcher}; or start torchrun with one task per node",
        )


def _tasks(ranks: LaunchRanks) -> int | None:
    if ranks.nodes is None or ranks.outer_per_node is None:
        return parts.number(ranks.launch, "ntasks")
    return ranks.nodes * ranks.outer_per_node


def _trainer(launch: Launch, *names: str) -> tuple[str, int | None] | None:
    found = parts.setting(launch.leaf.program, *names)
    if found is None:
        return None
    value = found[0]
    text = value.text
    if text in ("-1", "auto"):
        return text, None
    if text and re.match(r"\[[\d,\s]+\]\Z", text):
        return text, text.count(",") + 1
    return (str(value.number), value.number) if value.number is not None else None


def _trainer_devices(subject: Subject) -> Iterator[Found]:
    gpus = subject.ranks.gpus_per_node
    for ranks in subject.launches:
        launch = ranks.launch
        if ranks.framework or launch.launcher not in ("srun", "jsrun", "ibrun", "mpiexec", "mpirun"):
            continue
        each = ranks.outer_per_node
        devices = _trainer(launch, "devices", "gpus", "num_devices", "gpus_per_node")
        nodes = _trainer(launch, "num_nodes", "nnodes", "trainer_nodes")
        place = launch.leaf.place
        if devices is not None and each is not None:
            text, wanted = devices
            if wanted is None:
                wanted = gpus
            if wanted is not None and wanted != each and wanted > 0:
                explicit = devices[1] is not None
                yield Found(
                    f"the program is told {text} devices per node and {launch.launcher} starts {each}"
                    f" process{'es' if each > 1 else ''} per node",
                    place,
                    fix=f"--ntasks-per-node={wanted}, the same as the trainer's devices",
                    severity="error" if explicit and nodes else "warning",
                )
            elif wanted is None and each == 1:
                yield Found(
                    f"the program takes all devices ({text}) and {launch.launcher} starts one process per node,"
                    " though it expects one per device",
                    place,
                    severity="warning",
                )
        if nodes is not None and ranks.nodes is not None and nodes[1] is not None and nodes[1] != ranks.nodes:
            yield Found(
                f"the program is told {nodes[1]} nodes and {launch.launcher} runs it on {ranks.nodes}",
                place,
                fix=f"num_nodes={ranks.nodes}",
            )


def _spawn_strategy(subject: Subject) -> Iterator[Found]:
    for ranks in subject.launches:
        if not parts.stepped(ranks.launch) or ranks.launch.launcher == "ssh" or _tasks(ranks) == 1:
            continue
        found = parts.setting(ranks.launch.leaf.program, "strategy", "distributed_backend", "accelerator")
        text = found[0].text if found else None
        if found and text and _SPAWN.match(text.strip("'\"")):
            yield Found(
                f"{text} starts processes of its own inside each one that {ranks.launch.launcher} started",
                found[1],
                fix="strategy ddp, which takes the processes that are there",
            )


def _tasks_unplaced(subject: Subject) -> Iterator[Found]:
    script = subject.script
    tasks = script.directive("--ntasks") if script.scheduler == "slurm" else None
    if tasks is None or tasks.number is None or tasks.number < 2:
        return
    if any(script.directive(f"--{n}") for n in ("ntasks-per-node", "gpus-per-task", "ntasks-per-gpu")):
        return
    job = subject.ranks.job_nodes
    if job == 1 and tasks.number > 1:
        nodes_known = True
    elif job is not None and tasks.number == job:
        return
    else:
        nodes_known = job is not None
    launched = [r for r in subject.launches if parts.stepped(r.launch) and parts.trains(r.launch)]
    if any(r.launch.option("ntasks_per_node") for r in launched):
        return
    if subject.launches and not launched:
        return
    yield Found(
        f"--ntasks={tasks.number} does not say how many run on each node"
        + ("" if nodes_known else ", nor on how many nodes"),
        tasks.place,
        severity="note" if nodes_known else "warning",
        fix="--nodes and --ntasks-per-node, one task for each device",
    )


def _devices_differ(subject: Subject) -> Iterator[Found]:
    gpus = subject.ranks.gpus_per_node
    if not gpus:
        return
    for ranks in subject.launches:
        inner = parts.framework_of(ranks.launch)
        each = ranks.per_node if not inner else ranks.inner_per_node
        if each is None or each == gpus or not parts.trains(ranks.launch) or ranks.backend in ("gloo", "mpi"):
            continue
        if inner is None and (not parts.stepped(ranks.launch) or ranks.launch.launcher in ("ssh", "pdsh", "pbsdsh")):
            continue
        if inner is not None and (inner.option("cpu") or inner.launcher in ("ray", "horovodrun", "lightning")):
            continue
        if inner is not None and (ranks.outer_per_node or 1) > 1:
            continue
        option = inner.option("nproc_per_node") or inner.option("num_processes") if inner else None
        place = option.place if option else (inner or ranks.launch).place
        if each > gpus:
            yield Found(
                f"{each} processes per node for {gpus} device{'s' if gpus > 1 else ''} per node: "
                + ("there is no device for the rest" if inner else "several would share a device"),
                place,
                severity="error" if inner and ranks.devices.source == "node" else "warning",
            )
        elif inner is not None:
            if ranks.world_size and ranks.framework_nodes and ranks.world_size == gpus:
                continue  # accelerate's total, another rule
            yield Found(f"{each} of the node's {gpus} devices are used", place, severity="note")
        elif each > 1:
            yield Found(f"{each} processes per node for {gpus} devices", place, severity="note")


def _one_process(subject: Subject) -> Iterator[Found]:
    gpus = subject.ranks.gpus_per_node
    for ranks in subject.launches:
        if ranks.framework or not parts.stepped(ranks.launch) or (ranks.nodes or 1) < 2 or not gpus or gpus < 2:
            continue
        rank = ranks.launch.leaf.environment.get("LOCAL_RANK")
        if ranks.per_node == 1 and rank is not None and rank.value.has("per_task") and parts.trains(ranks.launch):
            yield Found(
                f"LOCAL_RANK comes from the launcher, which starts one process per node for {gpus} devices",
                ranks.launch.place,
                severity="warning",
                fix=f"--ntasks-per-node={gpus}",
            )


def _mpirun_slots(subject: Subject) -> Iterator[Found]:
    if subject.script.scheduler != "slurm" or not parts.has_directives(subject):
        return
    job = parts.shape(subject)
    for ranks in subject.launches:
        launch = ranks.launch
        if launch.launcher not in ("mpirun", "mpiexec") or launch.dialect in ("hydra", "pals", "intel"):
            continue
        wanted = parts.number(launch, "ntasks")
        if launch.command.conditional:
            continue
        if wanted is None or launch.option("oversubscribe") or launch.option("hosts") or launch.option("hostfile"):
            continue
        stated = job.tasks
        slots = stated or (job.nodes if not subject.script.directive("--ntasks-per-node") else None)
        if slots is not None and wanted > slots:
            yield Found(
                f"{launch.launcher} wants {wanted} processes and the job has {slots} slot{'s' if slots > 1 else ''}"
                + ("" if stated else " (no task count is asked for, so one per node)"),
                launch.place,
                severity="error" if stated else "warning",
                fix="ask for as many tasks: --nodes and --ntasks-per-node",
            )


_SLURM2 = _HEAD + "#SBATCH --gpus-per-node=4\n"
RULES = (
    Rule(
        id="runner-on-every-node",
        fault_class="LAUNCHER_TASK_MISMATCH",
        severity="error",
        title="a runner that reaches all hosts is started on all of them",
        why="The deepspeed runner and horovodrun start processes on every host by themselves. Run by srun or mpiexec"
        " on each node, every copy does so.",
        source="https://www.deepspeed.ai/getting-started/#resource-configuration-multi-node",
        fix="Run it once, or start one task per node with torchrun.",
        bad=_HEAD
        + "#SBATCH --ntasks-per-node=1\nsrun deepspeed --hostfile=hosts.$SLURM_JOB_ID --num_nodes 2 train.py\n",
        good=_HEAD + "#SBATCH --ntasks-per-node=1\ndeepspeed --hostfile=hosts.$SLURM_JOB_ID --num_nodes 2 train.py\n",
        check=_runner_on_every_node,
    ),
    Rule(
        id="trainer-devices-differ",
        fault_class="LAUNCHER_TASK_MISMATCH",
        severity="error",
        title="tasks per node and the trainer's devices differ",
        why="Lightning takes one process per device from the scheduler: tasks per node must be the trainer's devices,"
        " and the nodes its num_nodes, or ranks repeat and the job hangs.",
        source="https://lightning.ai/docs/pytorch/stable/clouds/cluster_advanced.html",
        fix="--ntasks-per-node equal to devices, --nodes equal to num_nodes.",
        bad=_SLURM2 + "#SBATCH --ntasks-per-node=1\nsrun python train.py --devices 4 --num_nodes 2\n",
        good=_SLURM2 + "#SBATCH --ntasks-per-node=4\nsrun python train.py --devices 4 --num_nodes 2\n",
        check=_trainer_devices,
    ),
    Rule(
        id="spawn-strategy-under-launcher",
        fault_class="LAUNCHER_TASK_MISMATCH",
        severity="error",
        title="a spawning strategy in processes a launcher started",
        why="spawn, fork and notebook strategies create the processes themselves; under srun, jsrun or mpiexec these"
        " exist already.",
        source="https://github.com/Lightning-AI/pytorch-lightning/issues/15103",
        fix="strategy=ddp.",
        bad=_SLURM2 + "#SBATCH --ntasks-per-node=4\nsrun python train.py --strategy=ddp_spawn\n",
        good=_SLURM2 + "#SBATCH --ntasks-per-node=4\nsrun python train.py --strategy=ddp\n",
        check=_spawn_strategy,
    ),
    Rule(
        id="tasks-not-placed",
        fault_class="LAUNCHER_TASK_MISMATCH",
        severity="warning",
        title="a number of tasks without a number per node",
        why="Slurm may put the tasks on any number of nodes, unevenly; one process per device needs a fixed number on"
        " each. Lightning refuses --ntasks alone.",
        source="https://github.com/Lightning-AI/pytorch-lightning/pull/15011",
        fix="--nodes and --ntasks-per-node.",
        bad="#!/bin/bash\n#SBATCH --ntasks=8\n#SBATCH --gpus=8\nsrun python train.py\n",
        good="#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --gpus-per-node=4\n"
        "srun python train.py\n",
        check=_tasks_unplaced,
    ),
    Rule(
        id="processes-differ-from-devices",
        fault_class="LAUNCHER_TASK_MISMATCH",
        severity="warning",
        title="processes per node are not the devices per node",
        why="More processes than devices fail with an invalid device ordinal or a duplicate device; with fewer,"
        " devices stand idle.",
        source="https://docs.pytorch.org/docs/stable/elastic/run.html (--nproc-per-node)",
        fix="As many processes per node as devices.",
        bad="#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gpus-per-node=4\n"
        "torchrun --standalone --nproc-per-node=8 t.py\n",
        good="#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gpus-per-node=4\n"
        "torchrun --standalone --nproc-per-node=4 t.py\n",
        check=_devices_differ,
    ),
    Rule(
        id="one-task-for-all-devices",
        fault_class="LAUNCHER_TASK_MISMATCH",
        severity="warning",
        title="local ranks from the launcher, but one process per node",
        why="With one process per node the launcher's local rank is always 0, so the other devices stay unused.",
        source="https://slurm.schedmd.com/srun.html (SLURM_LOCALID)",
        fix="One task per device.",
        bad=_SLURM2 + "#SBATCH --ntasks-per-node=1\nsrun bash -c 'LOCAL_RANK=$SLURM_LOCALID python train.py'\n",
        good=_SLURM2 + "#SBATCH --ntasks-per-node=4\nsrun bash -c 'LOCAL_RANK=$SLURM_LOCALID python train.py'\n",
        check=_one_process,
    ),
    Rule(
        id="mpirun-lacks-slots",
        fault_class="LAUNCHER_TASK_MISMATCH",
        severity="warning",
        title="mpirun wants more processes than the job has task slots",
        why="Inside a Slurm job Open MPI takes its slots from the tasks asked for: 'There are not enough slots"
        " available in the system'.",
        source="https://docs.open-mpi.org/en/v5.0.x/launching-apps/scheduling.html",
        fix="Ask for the tasks.",
        bad=_HEAD + "mpirun -np 8 python train.py\n",
        good=_HEAD + "#SBATCH --ntasks-per-node=4\nmpirun -np 8 python train.py\n",
        check=_mpirun_slots,
    ),
)
