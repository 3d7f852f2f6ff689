"""Launchers that believe in another number of nodes or processes than there are."""

from __future__ import annotations

from collections.abc import Iterator

from maple_parsl.rules import mending, parts
from maple_parsl.rules.base import Found, Rule, Subject

_PER_NODE = ("torchrun", "accelerate", "composer")
_HEAD = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node=4\n"
_ADDR = "export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\n"
_RDZV = "--rdzv-backend=c10d --rdzv-id=$SLURM_JOB_ID --rdzv-endpoint=$MASTER_ADDR:29500"


def _nodes_missing(subject: Subject) -> Iterator[Found]:
    for ranks in subject.launches:
        inner = parts.framework_of(ranks.launch)
        if inner is None or inner is ranks.launch or inner.launcher not in _PER_NODE or (ranks.nodes or 1) < 2:
            continue
        if (
            not parts.complete(inner)
            or ranks.framework_nodes != 1
            or inner.option("nnodes")
            or "PET_NNODES" in inner.environment
        ):
            continue
        if inner.launcher == "composer" and (inner.option("world_size") or "WORLD_SIZE" in inner.environment):
            continue
        if inner.launcher == "accelerate" and inner.config.get("num_machines"):
            continue
        name = "--num_machines" if inner.launcher == "accelerate" else "--nnodes"
        yield Found(
            f"{inner.launcher} runs on {ranks.nodes} nodes without {name}, whose default is 1:"
            " each node trains by itself, on the same data",
            inner.place,
            fix=f"add {name}={ranks.nodes} and one meeting point for all nodes",
            edits=mending.told_of_all_nodes(subject, ranks.launch, inner),
        )


def _one_of_several(subject: Subject, told: int) -> bool:
    """Steps of single nodes, side by side, that make up one launch."""
    rows = [r for r in subject.launches if r.framework_nodes == told and r.nodes is not None and r.nodes < told]
    return any(r.launch.command.background or r.launch.command.loop for r in rows)


def _nodes_differ(subject: Subject) -> Iterator[Found]:
    for ranks in subject.launches:
        inner = parts.framework_of(ranks.launch)
        told = ranks.framework_nodes
        if inner is None or inner is ranks.launch or inner.launcher not in _PER_NODE:
            continue
        option = inner.option("nnodes")
        if told is None or ranks.nodes is None or told == ranks.nodes or (option is None and told == 1):
            continue
        if ranks.outer_per_node is not None and ranks.outer_per_node > 1:
            continue  # another rule
        if told > ranks.nodes and _one_of_several(subject, told):
            continue
        waits = "waits for nodes that never come" if told > ranks.nodes else "leaves nodes out"
        yield Found(
            f"{inner.launcher} is told {told} nodes and is started on {ranks.nodes}: it {waits}",
            option.place if option else inner.place,
            fix=f"use $SLURM_NNODES or {ranks.nodes}" if subject.script.scheduler == "slurm" else f"use {ranks.nodes}",
            edits=parts.replace_text(
                subject, option.place, option.text, option.text.replace(str(told), str(ranks.nodes))
            )
            if option and option.text.count(str(told)) == 1
            else (),
        )


def _more_than_job(subject: Subject) -> Iterator[Found]:
    job = subject.ranks.job_nodes
    for ranks in subject.launches:
        if not parts.stepped(ranks.launch) or job is None or ranks.nodes is None or ranks.launch.command.loop:
            continue
        if ranks.nodes > job:
            yield Found(
                f"{ranks.launch.launcher} needs {ranks.nodes} nodes and the job has {job}",
                ranks.launch.place,
                fix="ask for as many nodes as are used, and derive counts from the scheduler's variables",
            )
        elif ranks.nodes < job and parts.trains(ranks.launch) and not _others(subject, ranks.launch.command.background):
            option = ranks.launch.option("ntasks") or ranks.launch.option("nodes")
            if option is None or len([r for r in subject.launches if parts.trains(r.launch)]) > 1:
                continue
            yield Found(
                f"{ranks.launch.launcher} uses {ranks.nodes} of the job's {job} nodes; the others stand idle",
                option.place,
                severity="warning",
            )


def _others(subject: Subject, background: bool) -> bool:
    return background


def _world_size(subject: Subject) -> Iterator[Found]:
    for ranks in subject.launches:
        told = ranks.launch.leaf.environment.get("WORLD_SIZE")
        if ranks.framework or told is None or not parts.stepped(ranks.launch) or not parts.trains(ranks.launch):
            continue
        size = told.value.number
        if size is None or ranks.processes is None or size == ranks.processes or ranks.launch.command.loop:
            continue
        yield Found(
            f"WORLD_SIZE is {size} and {ranks.launch.launcher} starts {ranks.processes} processes:"
            f" {'they wait for more' if size > ranks.processes else 'ranks beyond the size fail'}",
            told.place,
            fix="set WORLD_SIZE from the launcher in each process, such as $SLURM_NTASKS",
            edits=parts.replace_text(subject, told.place, f"WORLD_SIZE={size}", f"WORLD_SIZE={ranks.processes}"),
        )


def _accelerate_total(subject: Subject) -> Iterator[Found]:
    for ranks in subject.launches:
        inner = parts.framework_of(ranks.launch)
        if inner is None or inner.launcher != "accelerate":
            continue
        option = inner.option("num_processes")
        total, nodes = ranks.world_size, ranks.framework_nodes
        gpus = subject.ranks.gpus_per_node
        if total is None or nodes is None or nodes < 2:
            continue
        place = option.place if option else inner.place
        if total % nodes:
            yield Found(f"accelerate's {total} processes do not divide over {nodes} machines", place)
        elif gpus and gpus > 1 and total == gpus:
            yield Found(
                f"--num_processes {total} is the number for all {nodes} machines together: each starts"
                f" {total // nodes} processes for its {gpus} devices",
                place,
                fix=f"--num_processes {gpus * nodes}",
                edits=parts.replace_text(
                    subject, place, option.text, option.text.replace(str(total), str(gpus * nodes))
                )
                if option and option.text.count(str(total)) == 1
                else (),
            )


RULES = (
    Rule(
        id="launcher-nodes-missing",
        fault_class="LAUNCHER_TASK_MISMATCH",
        severity="error",
        title="a per-node launcher on several nodes is not told their number",
        why="torchrun, accelerate and composer assume one node. Started on several without a node count, every node"
        " makes a world of its own; nothing fails, and nothing is shared.",
        source="https://docs.pytorch.org/docs/stable/elastic/run.html (--nnodes, default 1:1)",
        fix="Give the number of nodes and one rendezvous endpoint.",
        bad=_HEAD + "srun torchrun --nproc-per-node=4 train.py\n",
        good=_HEAD + _ADDR + f"srun torchrun --nnodes=$SLURM_NNODES --nproc-per-node=4 {_RDZV} train.py\n",
        check=_nodes_missing,
    ),
    Rule(
        id="launcher-nodes-differ",
        fault_class="LAUNCHER_TASK_MISMATCH",
        severity="error",
        title="the launcher is told another number of nodes than it runs on",
        why="With more nodes than run the rendezvous never completes; with fewer, the rest is turned away.",
        source="https://docs.pytorch.org/docs/stable/elastic/run.html (--nnodes)",
        fix="Derive the number from the scheduler, such as --nnodes=$SLURM_NNODES.",
        bad=_HEAD + _ADDR + f"srun torchrun --nnodes=4 --nproc-per-node=4 {_RDZV} train.py\n",
        good=_HEAD + _ADDR + f"srun torchrun --nnodes=2 --nproc-per-node=4 {_RDZV} train.py\n",
        check=_nodes_differ,
    ),
    Rule(
        id="step-larger-than-job",
        fault_class="LAUNCHER_TASK_MISMATCH",
        severity="error",
        title="a step needs more nodes than the job has, or leaves some idle",
        why="A step cannot use nodes that were not allocated; nodes that no step uses are paid for and do nothing.",
        source="https://slurm.schedmd.com/srun.html (--nodes, --ntasks)",
        fix="Make the step as large as the job.",
        bad="#!/bin/bash\n#PBS -l select=2:ncpus=64:ngpus=4\nmpiexec -n 16 --ppn 4 python train.py\n",
        good="#!/bin/bash\n#PBS -l select=4:ncpus=64:ngpus=4\nmpiexec -n 16 --ppn 4 python train.py\n",
        check=_more_than_job,
    ),
    Rule(
        id="world-size-differs",
        fault_class="LAUNCHER_TASK_MISMATCH",
        severity="error",
        title="WORLD_SIZE is not the number of processes started",
        why="init_process_group waits until WORLD_SIZE processes have come, and refuses ranks beyond it.",
        source="https://docs.pytorch.org/docs/stable/distributed.html#environment-variable-initialization",
        fix="Take it from the launcher in each process.",
        bad="#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\nexport WORLD_SIZE=$SLURM_NNODES\n"
        "srun python train.py\n",
        good="#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\nexport WORLD_SIZE=$SLURM_NTASKS\n"
        "srun python train.py\n",
        check=_world_size,
    ),
    Rule(
        id="accelerate-total-processes",
        fault_class="LAUNCHER_TASK_MISMATCH",
        severity="error",
        title="accelerate's --num_processes is the total over all machines",
        why="Unlike torchrun's --nproc-per-node it counts the processes of all machines together; given per machine,"
        " part of the devices stays unused or the division fails.",
        source="https://huggingface.co/docs/accelerate/package_reference/cli (--num_processes: in total)",
        fix="Give machines x devices.",
        bad=_HEAD + _ADDR + "srun bash -c 'accelerate launch --num_machines 2 --num_processes 4"
        " --machine_rank $SLURM_NODEID --main_process_ip $MASTER_ADDR --main_process_port 29500 train.py'\n",
        good=_HEAD + _ADDR + "srun bash -c 'accelerate launch --num_machines 2 --num_processes 8"
        " --machine_rank $SLURM_NODEID --main_process_ip $MASTER_ADDR --main_process_port 29500 train.py'\n",
        check=_accelerate_total,
    ),
)
