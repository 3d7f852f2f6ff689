"""Launchers that start another number of processes than is meant."""

from __future__ import annotations

from collections.abc import Iterator

from maple_parsl.rules.base import Found, Rule, Subject

_FRAMEWORK = ("torchrun", "accelerate", "deepspeed", "composer")


def _per_node_launcher_many_times(subject: Subject) -> Iterator[Found]:
    for ranks in subject.launches:
        inner = next((launch for launch in ranks.launch.all if launch.launcher in _FRAMEWORK), None)
        if inner is None or inner is ranks.launch or ranks.outer_per_node is None or ranks.outer_per_node < 2:
            continue
        each = ranks.inner_per_node
        started = f", so {ranks.outer_per_node * each} processes per node" if each else ""
        yield Found(
            f"{ranks.launch.launcher} starts {inner.launcher} {ranks.outer_per_node} times on each node{started};"
            f" one {inner.launcher} per node starts all its processes itself",
            inner.place,
            fix=f"start one task per node (--ntasks-per-node=1), and let {inner.launcher} start the processes",
        )


RULES = (
    Rule(
        id="framework-launcher-per-task",
        fault_class="LAUNCHER_TASK_MISMATCH",
        severity="error",
        title="a per-node launcher is started once per device",
        why="torchrun, accelerate and deepspeed each start one process per device. Started once per device by srun or"
        " mpiexec they start devices x devices processes, which meet on the same port and the same GPUs.",
        source="https://docs.pytorch.org/docs/stable/elastic/run.html (one agent per node)",
        fix="One task per node: --ntasks-per-node=1 (or mpiexec --ppn 1).",
        bad="#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --gpus-per-node=4\n"
        "export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\n"
        "srun torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=$MASTER_ADDR:29500 t.py\n",
        good="#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node=4\n"
        "export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\n"
        "srun torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=$MASTER_ADDR:29500 t.py\n",
        check=_per_node_launcher_many_times,
    ),
)
