"""A Parsl Config of a plan's shape: many launches in one block, and nothing left running."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.slurm import bed as site
from tests.integration.slurm.test_schedulers import PRINT
from tests.testbeds.slurm.cluster import Testbed

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(180)]
DRIVER = """\
import os, sys, time
from pathlib import Path
from parsl import bash_app
from maple_parsl.plan import Plan
from maple_parsl.provider import launch_command, workflow

plan = Plan.from_json(Path("plan.json").read_text())

@bash_app
def launch(command, run_dir, stderr=None):
    return f"export MAPLE_RUN_DIR={run_dir}\\n" + command

if __name__ == "__main__":
    with workflow(plan, lease_seconds=8, heartbeat_period=3, heartbeat_threshold=9, strategy_period=1) as kernel:
        here = os.getcwd()
        if sys.argv[2] == "limit":
            try:
                launch(launch_command(plan, 5), f"{here}/limit").result()
            except Exception as error:
                print("limit", error.exitcode, flush=True)
            time.sleep(1)
            os.system("squeue --steps --noheader --format=%i | grep -v batch | sed 's/^/step /'; echo steps")
        for number in range(int(sys.argv[1])):
            begin = time.monotonic()
            code = launch(launch_command(plan, 60), f"{here}/launch{number}", stderr=f"{here}/err{number}").result()
            print("launch", number, code, round(time.monotonic() - begin, 2), flush=True)
        if sys.argv[2] == "hang":
            print("pid", os.getpid(), kernel.executors["maple"].interchange_proc.pid, flush=True)
            launch(f"sleep 600", here).result()
"""


@pytest.fixture
def driver(slurm: Testbed, tmp_path: Path) -> Iterator[list[str]]:
    (tmp_path / "driver.py").write_text(DRIVER)
    (tmp_path / "plan.json").write_text(site.plan(tmp_path, PRINT, memory="4G").to_json())
    env = {"PYTHONPATH": str(Path(__file__).parents[3]), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    yield [*slurm.prefix_command(cwd=tmp_path, env=slurm.environment | env), sys.executable, "driver.py"]
    slurm.cancel_all()


def test_one_block_serves_many_launches(slurm: Testbed, driver: list[str], tmp_path: Path) -> None:
    done = subprocess.run([*driver, "2", "end"], capture_output=True, text=True, timeout=120, check=False)
    errors = "".join(path.read_text() for path in tmp_path.glob("err*"))
    assert done.returncode == 0, done.stdout + done.stderr + errors
    print(done.stdout)
    jobs = set()
    for number in range(2):
        run = tmp_path / f"launch{number}"
        ranks = [json.loads((run / f"rank{rank}.json").read_text()) for rank in range(4)]
        assert [(rank["RANK"], rank["WORLD_SIZE"], rank["LOCAL_RANK"]) for rank in ranks] == [
            *[("0", "4", "0"), ("1", "4", "1"), ("2", "4", "0"), ("3", "4", "1")]
        ]
        assert len({rank["host"] for rank in ranks}) == 2
        assert json.loads((run / "exit.json").read_text())["code"] == 0
        jobs |= {rank["SLURM_JOB_ID"] for rank in ranks}
    assert len(jobs) == 1
    slurm.wait_job(int(jobs.pop()), timeout=20)


def test_a_killed_driver_leaves_nothing(slurm: Testbed, driver: list[str], tmp_path: Path) -> None:
    with subprocess.Popen([*driver, "1", "hang"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("pid"):
                break
        _, pid, interchange = line.split()
        assert slurm.run(["squeue", "-h", "-o", "%T"]).stdout.split() == ["RUNNING"]
        slurm.run(["kill", "-9", pid])
        process.wait(10)
    begin = time.monotonic()
    while slurm.run(["squeue", "-h"]).stdout or slurm.run(["kill", "-0", interchange], check=False).returncode == 0:
        assert time.monotonic() - begin < 30
        time.sleep(0.2)
    print(f"gone after {time.monotonic() - begin:.1f} s")


def test_a_driver_whose_machine_dies_leaves_no_block(slurm: Testbed, driver: list[str], tmp_path: Path) -> None:
    with subprocess.Popen([*driver, "1", "hang"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("pid"):
                break
        _, pid, interchange = line.split()
        guardian = slurm.run(["pgrep", "-f", "maple-guardian"]).stdout.split()
        slurm.run(["kill", "-9", *guardian, pid, interchange])
        process.wait(10)
    begin = time.monotonic()
    while slurm.run(["squeue", "-h"]).stdout:
        assert time.monotonic() - begin < 40
        time.sleep(0.2)
    print(f"gone after {time.monotonic() - begin:.1f} s")


def test_the_limit_of_a_launch_ends_every_process(slurm: Testbed, driver: list[str], tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import time; time.sleep(300)\n")
    done = subprocess.run([*driver, "0", "limit"], capture_output=True, text=True, timeout=120, check=False)
    said = [line for line in done.stdout.splitlines() if line.startswith(("limit", "step"))]
    assert said == ["limit 124", "steps"], done.stdout + done.stderr
    assert json.loads((tmp_path / "limit" / "exit.json").read_text())["reason"] == "terminated"
