"""Scripts of every site and paradigm, kept as files: a change in any of them is seen and read.

Written anew with MAPLE_UPDATE_GOLDEN=1. The shipped shell, equal in all, is left out of the files.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from maple_parsl import job
from tests import cases

HERE = Path(__file__).parent


def shortened(script: str) -> str:
    """The script with the shipped shell files replaced by their names."""
    for name in ("batch.sh", "local.sh", "task.sh"):
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


def test_scripts_lint_clean(tmp_path: Path) -> None:
    files = []
    for case, paradigm in cases.CASES:
        file = tmp_path / f"{case}.{paradigm}.sh"
        file.write_text(cases.plan(case, paradigm).script)
        files.append(file)
    # One of each site in full; the others differ in their launch lines only, which bash parses.
    chosen = [file for file in files if ".ddp." in file.name or ".3d." in file.name]
    done = subprocess.run(["shellcheck", "-s", "bash", *chosen], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[:3000]
    for file in files:
        assert subprocess.run(["bash", "-n", file], check=False).returncode == 0


@pytest.mark.parametrize("case", cases.SITES)
def test_the_same_plan_gives_the_same_script(case: str) -> None:
    plan = cases.plan(case, "fsdp")
    assert plan.script == cases.plan(case, "fsdp").script
    assert type(plan).from_json(plan.to_json()) == plan
    assert type(plan).from_json(plan.to_json()).script == plan.script
