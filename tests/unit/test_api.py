"""What importing costs, and the names of the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import maple_parsl

HEAVY = ("parsl", "torch", "globus_compute_sdk", "globus_sdk", "rich", "typer", "transformers")


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


def loaded(code: str) -> set[str]:
    return set(run(f"import sys\n{code}\nprint(*sorted({{m.split('.')[0] for m in sys.modules}}))").split())


def test_importing_the_package_imports_nothing() -> None:
    assert not loaded("import maple_parsl") & {*HEAVY, "pydantic"}


def test_planning_imports_nothing_heavy() -> None:
    code = "from maple_parsl import Request, Plan, plan, run, runs, Run\nplan('gpt', 'ddp', 'local').script"
    assert not loaded(code) & set(HEAVY)


def test_functions_are_not_hidden_by_modules_of_their_name() -> None:
    code = (
        "import maple_parsl.plan, maple_parsl.runs.poll\nfrom maple_parsl import Plan, plan, runs\n"
        "print(callable(plan), callable(runs), Plan.__module__, maple_parsl.plan.__name__)"
    )
    assert run(code) == "True True maple_parsl.plan plan"


def test_every_name_is_there() -> None:
    for name in maple_parsl.__all__:
        assert getattr(maple_parsl, name) is not None
        assert name in dir(maple_parsl)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = maple_parsl.nothing


def test_sites_and_local_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert {"polaris", "delta", "local"} <= set(maple_parsl.sites())
    made = maple_parsl.plan("gpt", "fsdp", "local")
    assert made.shape.nodes == 1
    assert made.request.environment.python is None  # what was stated, and no more
    assert made.provenance["python"].layer == "computed"
    assert sys.executable in made.script
    wide = maple_parsl.plan("gpt", "ddp", "local", gpus_per_node=3, node_kind="cpu")
    assert wide.shape.world_size == 3
