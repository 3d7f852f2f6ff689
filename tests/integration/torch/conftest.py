"""Runs that several tests look at, made once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest
from filelock import FileLock

from .harness import Run, copy_of_miniapps, run, torchrun_command

STEPS = 30
EVERY = 10
"""Steps between the checkpoints of `gpt_runs`."""


@pytest.fixture(scope="session")
def train_py(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The entry point of a copied folder."""
    return str(copy_of_miniapps(tmp_path_factory.mktemp("cluster")))


@pytest.fixture(scope="session")
def gpt_run(train_py: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Run]:
    """gpt trained on two ranks with 32 samples a step in all: a function from paradigm to its one run.

    All workers of a test session share the runs: the first that wants one makes it, the others wait.
    """
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    done: dict[str, Run] = {}

    def get(paradigm: str) -> Run:
        if paradigm not in done:
            folder = shared / f"gpt-{paradigm}"
            with FileLock(shared / f"gpt-{paradigm}.lock"):
                outputs = folder / "outputs.json"
                if not outputs.exists():
                    made = run(gpt_command(train_py, paradigm), folder)
                    outputs.write_text(json.dumps([made.code, made.stdout, made.stderr]))
                done[paradigm] = Run(folder, *json.loads(outputs.read_text()))
        return done[paradigm]

    return get


def gpt_command(train_py: str, paradigm: str, ranks: int = 2) -> list[str]:
    """The command of `gpt_run`; ``paradigm`` may be zero1, zero2 or zero3."""
    name, stage = (paradigm[:4], paradigm[4:]) if paradigm.startswith("zero") else (paradigm, "")
    batch = 32 // ranks if name in ("ddp", "fsdp", "zero") else 32
    words = f"--model gpt --paradigm {name} --steps {STEPS} --checkpoint-every {EVERY} --batch-size {batch}"
    stages = ["--zero-stage", stage] if stage else []
    return torchrun_command(ranks, train_py, *words.split(), *stages)
