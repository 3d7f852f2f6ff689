"""Parsl blocks in the shape of a plan, on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.integration.slurm.test_blocks import DRIVER
from tests.integration.test_local import plan

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
PRINT = """\
import json, os
with open(f"{os.environ['MAPLE_RUN_DIR']}/rank{os.environ['RANK']}.json", "w") as file:
    json.dump(os.environ["WORLD_SIZE"], file)
"""


def driver(folder: Path, *words: str) -> subprocess.Popen[str]:
    made = plan(folder, "any-run", PRINT).model_copy(update={"place": None})
    (folder / "plan.json").write_text(made.to_json())
    (folder / "driver.py").write_text(DRIVER)
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.Popen(
        [sys.executable, "driver.py", *words], cwd=folder, env=env, stdout=subprocess.PIPE, text=True
    )


def left(folder: Path) -> list[str]:
    """Command lines of processes that work in or for the folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            here = os.readlink(process / "cwd")
        except OSError:
            continue
        if str(folder) in line or here.startswith(str(folder)):
            found.append(line)
    return found


def test_many_launches(tmp_path: Path) -> None:
    with driver(tmp_path, "2", "end") as process:
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said + "".join(path.read_text() for path in tmp_path.glob("err*"))
    for number in range(2):
        assert [json.loads((tmp_path / f"launch{number}/rank{rank}.json").read_text()) for rank in (0, 1)] == ["2", "2"]


def test_a_killed_driver_leaves_nothing(tmp_path: Path) -> None:
    with driver(tmp_path, "0", "hang") as process:
        assert process.stdout is not None
        next(line for line in process.stdout if line.startswith("pid"))
        time.sleep(8)  # until the block and its worker are there
        assert left(tmp_path)
        process.kill()
    end = time.monotonic() + 60
    while names := left(tmp_path):
        assert time.monotonic() < end, names
        time.sleep(0.5)
