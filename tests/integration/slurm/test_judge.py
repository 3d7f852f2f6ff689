"""The judge's pretended srun starts what a real srun starts: tasks, places, and what each is told.

The cluster here binds nothing (no cgroups), so cores and devices of single tasks are not compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from maple_parsl.judge.case import Case, Program
from maple_parsl.judge.sandbox import Sandbox
from maple_parsl.judge.sites import JudgedSite
from maple_parsl.judge.submission import read
from maple_parsl.judge.world import world
from tests.testbeds.slurm import Testbed

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(180)]

SITE = JudgedSite.model_validate(
    {
        "source": "the testbed's own configuration",
        "checked_on": date(2026, 12, 1),
        "scheduler": "slurm",
        "node": "node{}",
        "domain": "bed",
        "required": (),
        "gres": True,
        "kinds": {"gpu": {"vendor": "nvidia", "devices": 4, "cores": 16, "threads": 1}},
        "queues": {"gpu": {"kinds": ("gpu",)}},
    }
)
# What each task is told, in one line. The names of nodes differ, so the node's number stands for it.
TOLD = (
    "echo TASK $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID of $SLURM_NTASKS $SLURM_NPROCS on $SLURM_NNODES"
    " $SLURM_STEP_NUM_TASKS $SLURM_STEP_NUM_NODES $SLURM_TASKS_PER_NODE $SLURM_STEP_TASKS_PER_NODE"
    " cpus ${SLURM_CPUS_PER_TASK-none} gpus ${CUDA_VISIBLE_DEVICES-none} kept ${KEPT-none} two ${TWO-none}"
)
STEPS = (
    "",
    "-n 4",
    "-n 2",
    "-n 1",
    "-N 1",
    "-N 1 -n 1",
    "-N 2 -n 3",
    "--ntasks-per-node=1",
    "--ntasks-per-node=2",
    "-n 4 --ntasks-per-node=2",
    "-N 2 --ntasks-per-node=1 -c 1",
    "-m cyclic -n 4",
    "-c 2 -n 2",
    "--export=ALL,TWO=2",
    "--export=NONE",
    "--export=KEPT",
    "--export=TWO=2",
    "--gpu-bind=none -n 2",
    "-n2 -N2 -l -u",
    "-r 1 -N 1 -n 1",
    "--no-such-option",
    "-n 64",
)
JOBS = {
    "tasks per node": "-N 2 --ntasks-per-node=2 --gpus-per-node=4",
    "tasks in all": "-N 2 -n 4 --ntasks-per-node=2 --gpus-per-node=2",
    "one task a node": "-N 2 --ntasks-per-node=1 --cpus-per-task=4 --gpus-per-node=4",
    "whole nodes": "-N 2 --exclusive --gpus-per-node=4",
    "three nodes": "-N 3 --ntasks-per-node=4 --exclusive",
}
BATCH = (
    "echo BATCH ${SLURM_NTASKS-none} ${SLURM_NTASKS_PER_NODE-none} ${SLURM_CPUS_PER_TASK-none} $SLURM_JOB_NUM_NODES"
    " $SLURM_TASKS_PER_NODE $SLURM_JOB_CPUS_PER_NODE ${CUDA_VISIBLE_DEVICES-none}"
)
VARIABLES = "env | sed -n 's/^\\(SLURM_[A-Z_]*\\)=.*/\\1/p' | sort -u"


def script(options: str) -> str:
    lines = ["#!/bin/bash", *(f"#SBATCH {word}" for word in re.split(r" (?=-)", options)), "export KEPT=yes"]
    lines.append("unset TWO")
    lines.append(BATCH)
    lines += [f"echo 'STEP {step}'; srun {step} /bin/sh -c '{TOLD}' 2>/dev/null || echo REFUSED" for step in STEPS]
    lines.append(f'echo VARIABLES; srun -n 1 -N 1 sh -c "{VARIABLES}"')
    return "\n".join(lines) + "\n"


def steps(output: str) -> dict[str, list[str]]:
    """By step, its lines in order: tasks speak when they like, and srun's label is left out."""
    found: dict[str, list[str]] = {}
    name = "batch"
    for line in output.splitlines():
        if line.startswith("STEP") or line == "VARIABLES":
            name = line
        found.setdefault(name, []).append(re.sub(r"^\d+: ", "", line).replace("  ", " ").strip())
    return {name: sorted(lines) for name, lines in found.items()}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as box:
        yield box


@pytest.mark.parametrize("name", JOBS)
def test_the_pretended_srun_starts_what_srun_starts(
    slurm: Testbed, sandbox: Sandbox, tmp_path: Path, name: str
) -> None:
    text = script(JOBS[name])
    job = slurm.submit(text, "-p", "gpu", f"--output={tmp_path}/out", cwd=tmp_path)
    slurm.wait_job(job, timeout=150)
    real = steps((tmp_path / "out").read_text())
    asked = read(text, "slurm")
    case = Case(site="bed", nodes=asked.nodes or 1, devices_per_node=4, queue="gpu", program=Program(script="x"))
    pretended = steps(sandbox.run(world(case, SITE, asked, text))["output"])
    names = pretended.pop("VARIABLES")
    real_names = real.pop("VARIABLES")
    assert [(step, pretended.get(step), real[step]) for step in real if pretended.get(step) != real[step]] == []
    assert len(real) == len(STEPS) + 1
    assert set(names) <= set(real_names) | {"VARIABLES"}
