"""The preflight's own processes over gloo: a good launch, and launches that cannot train."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from maple_parsl import job

pytestmark = [pytest.mark.torch, pytest.mark.timeout(200)]
SECONDS = 60


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def launch(folder: Path, *ranks: dict[str, str], arguments: tuple[str, ...] = ()) -> tuple[dict[str, Any], list[int]]:
    """Start ranks with these variables; the verdict, and the exit codes."""
    program = folder / "preflight.py"
    program.write_text(job.text("preflight.py"))
    base = {
        "PATH": os.environ["PATH"],
        "OMP_NUM_THREADS": "1",
        "MAPLE_ATTEMPT_DIR": str(folder),
        "MAPLE_DEVICE": "cpu",
        "MAPLE_BACKEND": "gloo",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
    }
    words = [sys.executable, str(program), "--nodes", "1", "--per-node", "2", "--seconds", str(SECONDS), *arguments]
    started = [
        subprocess.Popen(words, env={**base, "RANK": str(index), "LOCAL_RANK": str(index), **own})
        for index, own in enumerate(ranks)
    ]
    try:
        codes = [process.wait(SECONDS + 60) for process in started]
    finally:
        for process in started:
            process.kill()
    return json.loads((folder / "verdict.json").read_text()), codes


@pytest.mark.parametrize("paradigm", ["ddp", "3d", "zero"])
def test_a_good_launch_passes(tmp_path: Path, paradigm: str) -> None:
    verdict, codes = launch(tmp_path, {}, {}, arguments=("--paradigm", paradigm))
    assert (verdict["verdict"], verdict["ranks"], verdict["findings"], codes) == ("pass", 2, [], [0, 0])


@pytest.mark.parametrize(
    "ranks,fault",
    [
        (({"WORLD_SIZE": "1"}, {"RANK": "0", "WORLD_SIZE": "1"}), "LAUNCHER_TASK_MISMATCH"),
        (({"MASTER_ADDR": "192.0.2.1"}, {"MASTER_ADDR": "192.0.2.1"}), "RDZV_ENDPOINT"),
        (({}, {"MASTER_ADDR": "127.0.0.2", "MASTER_PORT": "9"}), "RDZV_ENDPOINT"),
    ],
    ids=["alone-each", "address-elsewhere", "two-meeting-points"],
)
def test_what_cannot_train_stops_in_time(tmp_path: Path, ranks: tuple[dict[str, str], ...], fault: str) -> None:
    began = time.monotonic()
    verdict, codes = launch(tmp_path, *ranks)
    assert verdict["verdict"] == "stop"
    assert fault in [item["class"] for item in verdict["findings"]]
    assert 76 in codes
    assert time.monotonic() - began < SECONDS


def test_ranks_that_never_come_are_told_by_the_deadline(tmp_path: Path) -> None:
    verdict, codes = launch(tmp_path, {}, arguments=("--seconds", "30"))
    assert verdict["verdict"] in ("stop", "warn")  # warn: a machine so slow that torch was still being read
    text = verdict["findings"][0]["message"]
    assert "1 of 2 ranks" in text or "importing torch" in text
    assert codes == [76 if verdict["verdict"] == "stop" else 0]


def test_without_torch_the_rest_is_done_and_nothing_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('there is no torch')\n")
    verdict, codes = launch(tmp_path, {}, {})
    assert (verdict["verdict"], codes) == ("warn", [0, 0])
    assert "there is no torch" in verdict["findings"][-1]["message"]


def test_a_fault_of_its_own_stops_nothing(tmp_path: Path) -> None:
    own = {"MAPLE_BACKEND": "nosuch"}
    verdict, codes = launch(tmp_path, own, own)
    assert (verdict["verdict"], codes) == ("warn", [0, 0])
    assert verdict["findings"][0]["class"] == "PREFLIGHT"
