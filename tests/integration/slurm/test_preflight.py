"""The preflight of two-node launches on a real Slurm: a good one trains, a wrong one ends within a minute, named."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.slurm.login import Login
from tests.testbeds.slurm import Testbed

pytestmark = [pytest.mark.slurm, pytest.mark.torch, pytest.mark.timeout(300)]
TWO = ("gpt", "ddp", "slurm-stand", "--nodes", "2", "--gpus-per-node", "1", "--preflight", "stop")


@pytest.fixture
def login(slurm: Testbed, tmp_path: Path) -> Iterator[Login]:
    yield Login(slurm, tmp_path / "home")
    slurm.cancel_all()
    slurm.wait_idle()


@pytest.mark.parametrize("template", ["plain", "torchrun"])
def test_a_good_launch_passes_and_trains(login: Login, template: str) -> None:
    run = login.start(*TWO, "--template", template, "--", "--steps", "5")
    status = login.until(run, "done", "failed", seconds=200)
    assert status["state"] == "done", login.log(run)[-3000:]
    assert (status["preflight"]["verdict"], status["preflight"]["ranks"]) == ("pass", 2)
    assert login.metrics(run)[-1]["event"] == "end"
    assert len((login.run_dir(run) / "attempts/1/ranks.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    "wrong,fault",
    [
        (("--template", "plain", "--launcher-arg=--ntasks=1"), "LAUNCHER_TASK_MISMATCH"),
        (("--template", "plain", "--setup", "scontrol() { echo localhost; }"), "RDZV_ENDPOINT"),
        (("--template", "plain", "--setup", "scontrol() { echo 192.0.2.1; }"), "RDZV_ENDPOINT"),
    ],
    ids=["one-rank", "localhost", "another-host"],
)
def test_a_wrong_launch_ends_within_a_minute_and_is_named(login: Login, wrong: tuple[str, ...], fault: str) -> None:
    run = login.start(*TWO, *wrong)
    status = login.until(run, "failed", "done", seconds=150)
    record = status["exit"]
    assert (status["state"], record["reason"], record["code"]) == ("failed", "preflight", 76), login.log(run)[-3000:]
    assert record["ended"] - record["started"] < 60
    assert fault in [found["class"] for found in record["preflight"]["findings"]]
    assert not login.metrics(run)
    assert fault in login.maple("status", run).stdout


def test_alone_it_trains_nothing_and_is_done(login: Login) -> None:
    shown = login.maple("preflight", *TWO[:-2], "-q", "gpu", "--python", sys.executable, "--no-wait")
    assert shown.returncode == 0, shown.stderr
    assert "0.33 node-hours" in shown.stderr  # 2 nodes x 10 minutes, said before anything is sent
    run = shown.stdout.split()[1]
    status = login.until(run, "done", "failed", seconds=150)
    assert (status["state"], status["preflight"]["verdict"]) == ("done", "pass"), login.log(run)[-3000:]
    assert not login.metrics(run)
