"""The testbed as a site of Maple, and its commands on this process's PATH."""

from __future__ import annotations

import os
import shlex
import shutil
from datetime import date
from pathlib import Path
from typing import Any

from maple_parsl.compose import compose
from maple_parsl.plan import Plan, RunPlace
from maple_parsl.request import Request
from maple_parsl.site import Site
from tests import cases
from tests.testbeds.slurm.cluster import Testbed

COMMANDS = ("sbatch", "squeue", "sacct", "scontrol", "scancel", "sinfo", "srun")
FACTS = {"source": "the testbed's own configuration", "checked_on": date(2026, 12, 1)}
SITE = Site.model_validate(
    {
        "name": "bed",
        "title": "Testbed",
        "scheduler": {**FACTS, "kind": "slurm", "account": "optional", "queue_option": "partition", "signal": True},
        "directives": {**FACTS, "gpu_request": "gpus-per-node"},
        "kinds": {
            "gpu": {
                **FACTS,
                "title": "pretended A100",
                "vendor": "nvidia",
                "gpus": 4,
                "devices": 4,
                "backend": "gloo",
                "torch_device": "cpu",
                "cores": 16,
            }
        },
        "launchers": {
            "default": {
                **FACTS,
                "command": "srun",
                "dialect": "slurm",
                "rank": ["SLURM_PROCID"],
                "local_rank": ["SLURM_LOCALID"],
                "world_size": ["SLURM_NTASKS"],
                "node_rank": ["SLURM_NODEID"],
                "preferred_style": "per-device",
            }
        },
        "environments": {"default": FACTS},
        "rendezvous": FACTS,
        "queues": {
            **FACTS,
            "entry": [{"name": name, "kinds": ["gpu"], "max_walltime": "02:00:00"} for name in ("gpu", "debug")],
        },
    }
)


def plan(folder: Path, program: str, name: str | None = None, **fields: Any) -> Plan:
    """A plan that runs a Python program with one process per device; bound to a run where a name is given."""
    script = folder / "program.py"
    script.write_text(program)
    stated = {"nodes": 2, "gpus_per_node": 2, "walltime": "5m", "queue": "gpu", "cpus": 1, "preflight": "off", **fields}
    made = compose(Request.of(script=str(script), **stated), SITE, cases.templates())
    return at(made, folder, name) if name else made


def at(made: Plan, folder: Path, name: str) -> Plan:
    run_dir = folder / name
    run_dir.mkdir(exist_ok=True)
    placed = made.at(RunPlace(run_id=name, run_dir=str(run_dir), work_dir=str(folder)))
    (run_dir / "script.sh").write_text(placed.script)
    return placed


def script_of(made: Plan) -> Path:
    assert made.place
    return Path(made.place.run_dir, "script.sh")


def put_commands(bed: Testbed, folder: Path) -> Path:
    """A folder with the cluster's commands, each of which runs on the head node; inside they are the real ones."""
    folder.mkdir(exist_ok=True)
    words = bed.prefix_command(cwd="@HERE@")
    for name in COMMANDS:
        real = shutil.which(name)
        assert real
        line = shlex.join([*words, real]).replace("@HERE@", '"$PWD"')
        outside = f'[ "$(uname -n)" = {shlex.quote(os.uname().nodename)} ]'
        (folder / name).write_text(f'#!/bin/sh\n{outside} && exec {line} "$@"\nexec {real} "$@"\n')
        (folder / name).chmod(0o755)
    return folder
