"""Parsl's own PBS provider in the shape of a plan, on the STAND-INS for PBS."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from maple_parsl.schedulers import JobState
from tests import cases
from tests.integration.pbs.test_pbs import PRINT, waited
from tests.integration.pbs.test_pbs import pbs as pbs
from tests.integration.slurm.test_blocks import DRIVER
from tests.testbeds.pbs.cluster import PbsStandIn

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def driver(folder: Path, *words: str) -> subprocess.Popen[str]:
    (folder / "program.py").write_text(PRINT)
    made = cases.plan("polaris", model=None, script=str(folder / "program.py"))
    (folder / "plan.json").write_text(made.to_json())
    (folder / "driver.py").write_text(DRIVER)
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    return subprocess.Popen(
        [sys.executable, "driver.py", *words], cwd=folder, env=env, stdout=subprocess.PIPE, text=True
    )


def test_one_block_serves_many_launches_and_is_given_back(pbs: PbsStandIn, tmp_path: Path) -> None:
    with driver(tmp_path, "2", "end") as process:
        said, _ = process.communicate(timeout=100)
    assert process.returncode == 0, said + "".join(path.read_text() for path in tmp_path.glob("err*"))
    for number in range(2):
        run = tmp_path / f"launch{number}"
        ranks = [json.loads((run / f"rank{rank}.json").read_text()) for rank in range(8)]
        assert [rank["LOCAL_RANK"] for rank in ranks] == ["0", "1", "2", "3"] * 2
        assert {rank["PBS_JOBID"] for rank in ranks} == {"1.pbsserver"}
    assert waited("1.pbsserver").state is JobState.cancelled


def test_a_killed_driver_leaves_nothing(pbs: PbsStandIn, tmp_path: Path) -> None:
    with driver(tmp_path, "1", "hang") as process:
        assert process.stdout is not None
        line = next(line for line in process.stdout if line.startswith("pid"))
        interchange = int(line.split()[2])
        process.kill()
    assert waited("1.pbsserver", timeout=20).state is JobState.cancelled
    end = time.monotonic() + 10
    while Path(f"/proc/{interchange}/stat").exists() and ") Z " not in Path(f"/proc/{interchange}/stat").read_text():
        assert time.monotonic() < end
        time.sleep(0.1)
