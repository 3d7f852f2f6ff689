"""Restarts on a real Slurm: a job that fails by a variable of the user's is put right, said, and trains."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.slurm.login import Login
from tests.testbeds.slurm import Testbed

pytestmark = [pytest.mark.slurm, pytest.mark.torch, pytest.mark.timeout(400)]


@pytest.fixture
def login(slurm: Testbed, tmp_path: Path) -> Iterator[Login]:
    yield Login(slurm, tmp_path / "home")
    slurm.cancel_all()
    slurm.wait_idle()


def test_a_network_that_is_not_there_is_put_right_and_the_job_trains(login: Login) -> None:
    done = login.maple(
        "run", "gpt", "ddp", "slurm-stand", "--nodes", "2", "--gpus-per-node", "1", "--walltime", "5m",
        "--queue", "gpu", "--python", sys.executable, "--preflight", "off", "--env", "GLOO_SOCKET_IFNAME=ib0",
        "--restarts", "2", "--max-node-hours", "0.4", "--yes", "--wait", "--json", "--", "--steps", "5",
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    outcome = json.loads(done.stdout)["outcome"]
    assert outcome["ok"]
    assert "(you had said GLOO_SOCKET_IFNAME=ib0)" in "\n".join(outcome["restarts"])
    first, last = sorted(login.json("runs", "--all")["runs"], key=lambda run: str(run["run"]))
    assert (first["state"], last["state"], last["run"]) == ("failed", "done", outcome["id"])
    assert login.metrics(outcome["id"])[-1]["event"] == "end"
    assert f"started again as run {outcome['id']}" in " ".join(login.maple("status", first["run"]).stdout.split())
