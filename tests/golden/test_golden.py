"""Scripts of every site and paradigm, kept as files: a change in any of them is seen and read.

Written anew with MAPLE_UPDATE_GOLDEN=1. The shipped shell, equal in all, is left out of the files.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from maple_parsl import job
from maple_parsl.request import PARADIGMS
from tests import cases

HERE = Path(__file__).parent


def shortened(script: str) -> str:
    """The script with the shipped shell files replaced by their names."""
    for name in ("batch.sh", "local.sh", "task.sh", "preflight.py"):
        rows = [row for row in job.text(name).rstrip("\n").split("\n") if not row.startswith(("# shellcheck ", "#!"))]
        script = script.replace("\n".join(rows), f"<{name}>")
    return script


@pytest.mark.parametrize("case,paradigm", cases.CASES)
def test_script_is_the_kept_one(case: str, paradigm: str) -> None:
    made = shortened(cases.plan(case, paradigm).script)
    kept = HERE / case / f"{paradigm}.sh"
    if os.environ.get("MAPLE_UPDATE_GOLDEN"):
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(made)
    assert made == kept.read_text()


def test_no_kept_script_is_stale() -> None:
    kept = {(file.parent.name, file.stem) for file in HERE.glob("*/*.sh")}
    assert kept == set(cases.CASES)


@pytest.mark.parametrize("paradigm", PARADIGMS)
def test_scripts_lint_clean(tmp_path: Path, paradigm: str) -> None:
    files = []
    for case in cases.SITES:
        file = tmp_path / f"{case}.{paradigm}.sh"
        file.write_text(cases.plan(case, paradigm).script)
        files.append(file)
    done = subprocess.run(["shellcheck", "-s", "bash", *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[:3000]


@pytest.mark.parametrize("case", cases.SITES)
def test_the_same_plan_gives_the_same_script(case: str) -> None:
    plan = cases.plan(case, "fsdp")
    assert plan.script == cases.plan(case, "fsdp").script
    assert type(plan).from_json(plan.to_json()) == plan
    assert type(plan).from_json(plan.to_json()).script == plan.script
