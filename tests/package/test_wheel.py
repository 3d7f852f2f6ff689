"""What a user gets: the wheel, made from the source distribution, in a clean environment outside the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    # python -m build makes the wheel from the source distribution, so both are tried.
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, timeout=200)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def user(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a clean environment with the wheel and its core dependencies only."""
    folder = tmp_path_factory.mktemp("user") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "pip"), "install", "-q", "--disable-pip-version-check", "-c", ROOT / "constraints.txt"]
    subprocess.run([*pip, str(wheel)], check=True, timeout=300)
    return folder / "bin"


def maple(user: Path, cwd: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": f"{user}:/usr/bin:/bin", "HOME": str(cwd), "LC_ALL": "C.UTF-8", **env}
    return subprocess.run(
        [str(user / "maple"), *words], cwd=cwd, env=environ, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_wheel_has_the_knowledge_once_and_no_tests(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert len(names) == len(set(names))
    for name in (
        "data/providers/polaris.toml",
        "data/agents/retrieval/templates/torchrun.toml",
        "job/task.sh",
        "py.typed",
    ):
        assert f"maple_parsl/{name}" in names
    assert not [name for name in names if name.startswith("tests")]
    with tarfile.open(next(wheel.parent.glob("*.tar.gz"))) as source:
        assert any(name.endswith("/providers/polaris.toml") for name in source.getnames())


def test_plan_sites_and_doctor_work_there(user: Path, tmp_path: Path) -> None:
    done = maple(user, tmp_path, "plan", "gpt", "fsdp", "polaris", "--nodes", "2", "--walltime", "30m",
                 "--account", "demo", "--queue", "debug", "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert set(made) >= {"script", "request", "ranks", "findings"}
    assert made["script"].startswith("#!/bin/bash -l\n#PBS ")
    assert maple(user, tmp_path, "sites", "--json").returncode == 0
    assert maple(user, tmp_path, "doctor").returncode == 0


def test_no_framework_comes_along(user: Path) -> None:
    code = "import importlib.util as u; print([n for n in ('torch', 'globus_sdk', 'transformers') if u.find_spec(n)])"
    done = subprocess.run([str(user / "python"), "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_importing_brings_nothing_heavy(user: Path, tmp_path: Path) -> None:
    code = (
        "import sys, maple_parsl; early = set(sys.modules); from maple_parsl import Request, Plan, plan;"
        "print([n for n in ('pydantic', 'parsl', 'rich') if n in early],"
        " [n for n in ('parsl', 'torch', 'rich') if n in sys.modules])"
    )
    done = subprocess.run([str(user / "python"), "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == "[] []"


def test_the_three_words_train_without_maple_in_the_job(user: Path, tmp_path: Path) -> None:
    """The program runs in an environment that cannot see Maple: this test's own Python, which has torch."""
    done = maple(
        user, tmp_path, "run", "gpt", "ddp", "local", "--python", sys.executable,
        "--wait", "--json", "--", "--steps", "10",
        MAPLE_HOME=str(tmp_path / "home"), OMP_NUM_THREADS="1", PATH=f"{user}:{os.environ['PATH']}",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["outcome"]["state"] == "done"
