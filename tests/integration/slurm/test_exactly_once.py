"""kill -9 of a submitting client, against a real Slurm: no job lost, none double."""

from __future__ import annotations

import os
import random
import shutil
import sys
import time
from pathlib import Path

import pytest

from maple_parsl.runs import backend, recover
from maple_parsl.runs.run import Run
from maple_parsl.runs.state import RunState
from maple_parsl.runs.store import Store
from tests.integration import kills
from tests.integration.slurm import bed as site
from tests.testbeds.slurm.cluster import Testbed

COUNT = int(os.environ.get("MAPLE_KILLS", "10"))
pytestmark = [pytest.mark.slurm, pytest.mark.timeout(120 + 20 * COUNT)]


def test_no_job_lost_and_none_double(slurm: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kills.prepare(tmp_path, monkeypatch)
    commands = site.put_commands(slurm, tmp_path / "commands")
    first = kills.slow(tmp_path / "slow", str(commands / "sbatch"))
    python = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{first}:{commands}:{python}:{os.environ['PATH']}")
    monkeypatch.setattr(recover, "GRACE_HERE", 3.0)
    backend._backends.clear()
    rng = random.Random(20261201)
    pace = kills.pace()
    found = []
    try:
        for _ in range(COUNT):
            found.append(kills.kill_one(rng, pace))
            kills.check(found[-1])
        print(kills.summary(found))
        assert any(one.in_time and one.run_id for one in found), found
        ended = [Run.open(run_id).result(120) for run_id in Store().ids() if _has_job(run_id)]
        assert {outcome.state for outcome in ended} == {RunState.DONE}, [str(outcome) for outcome in ended]
        for run_id in Store().ids():  # each program ran once
            log = Run.open(run_id).run_dir / "log.txt"
            assert not log.exists() or log.read_text().count("trained") == 1
    finally:
        slurm.cancel_all()
        for folder in tmp_path.glob("maple-runs"):
            shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.1)


def _has_job(run_id: str) -> bool:
    return Run.open(run_id).job_id is not None
