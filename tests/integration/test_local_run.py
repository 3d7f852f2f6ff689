"""Whole runs on this machine: three words, a failing rank, cancelling, and a client that goes away."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import maple_parsl
from maple_parsl.runs.run import Run
from maple_parsl.runs.state import RunState

pytestmark = [pytest.mark.torch, pytest.mark.timeout(240)]
ROOT = Path(__file__).parents[2]
MAPLE = [sys.executable, "-c", "import sys; from maple_parsl.cli import main; sys.exit(main())"]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MAPLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return tmp_path


def test_three_words_train() -> None:
    code = "import maple_parsl as m; print(m.run('gpt','fsdp','local').result())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200, check=True)
    assert ": done, code 0" in done.stdout
    (run_id,) = (run.id for run in maple_parsl.runs())
    outcome = Run.open(run_id).result(1)
    assert outcome.metrics is not None
    assert outcome.metrics.first_loss is not None
    assert outcome.metrics.last_loss is not None
    assert outcome.metrics.last_loss < outcome.metrics.first_loss


def test_a_rank_that_exits_7() -> None:
    Path("p.py").write_text("import os, sys, time\nif os.environ['RANK'] == '1': sys.exit(7)\ntime.sleep(60)\n")
    done = subprocess.run(
        [*MAPLE, "run", "--script", "p.py", "--site", "local", "--wait", "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 10
    outcome = json.loads(done.stdout)["outcome"]
    assert (outcome["state"], outcome["rank"], outcome["code"]) == ("failed", 1, 7)


def test_the_job_outlives_its_client_and_ctrl_c_does_not_end_it() -> None:
    Path("p.sh").write_text("sleep 4\necho trained\n")
    client = subprocess.Popen(
        [*MAPLE, "run", "--script", "p.sh", "--site", "local", "--gpus-per-node", "1", "--follow"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 60
    while not any(run.state is RunState.RUNNING for run in maple_parsl.runs()):
        assert time.monotonic() < until
        time.sleep(0.2)
    time.sleep(0.5)
    client.send_signal(signal.SIGINT)
    _, said = client.communicate(timeout=30)
    assert client.returncode == 130
    assert "the run goes on" in said
    (run,) = maple_parsl.runs()
    assert run.result(90).ok
    assert "trained" in run.logs()


def test_cancel() -> None:
    Path("p.sh").write_text("sleep 100\n")
    run = maple_parsl.run(request=maple_parsl.Request.of(site="local", script="p.sh", gpus_per_node=1))
    until = time.monotonic() + 60
    while not (run.run_dir / "bin" / "start.sh").exists():
        assert time.monotonic() < until
        time.sleep(0.1)
    time.sleep(2)
    run.cancel()
    assert run.result(60).state is RunState.CANCELLED


def test_killed_without_a_record() -> None:
    Path("p.sh").write_text("sleep 100\n")
    run = maple_parsl.run(request=maple_parsl.Request.of(site="local", script="p.sh", gpus_per_node=1))
    pid = int((run.job_id or "").split("-")[1])
    os.killpg(pid, signal.SIGKILL)
    outcome = run.result(30)
    assert outcome.state is RunState.FAILED
    assert "without an exit record" in outcome.cause or "before its script" in outcome.cause


def test_snapshot_keeps_what_was_there() -> None:
    Path("p.sh").write_text("sleep 2\ncat data.txt\n")
    Path("data.txt").write_text("as it was\n")
    request = maple_parsl.Request.of(site="local", script=str(Path("p.sh").absolute()), gpus_per_node=1, snapshot=True)
    run = maple_parsl.run(request=request)
    Path("data.txt").write_text("edited later\n")
    Path("p.sh").write_text("exit 3\n")
    assert run.result(90).ok
    assert "as it was" in run.logs()
