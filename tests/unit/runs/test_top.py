"""maple top: what it shows, in any width, and that it leaves when asked."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from maple_parsl.api import run as launch
from maple_parsl.cli import main
from maple_parsl.plan import Plan
from maple_parsl.runs.store import Store
from maple_parsl.schedulers.base import JobState

from .conftest import FIELDS, WORDS, FakeScheduler


@pytest.fixture
def running(fake: FakeScheduler, store: Store, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a run on one node that started half an hour ago and trains."""
    monkeypatch.setenv("MAPLE_POLL_SECONDS", "0.05")
    made = launch(*WORDS, **FIELDS, yes=True)
    job_id = next(iter(fake.jobs))
    fake.put(job_id, JobState.running, nodes="gpua001")
    started = {"job_id": job_id, "attempt": 1, "host": "gpua001", "started": time.time() - 1800}
    (made.run_dir / "attempts" / "1").mkdir(parents=True)
    (made.run_dir / "started.json").write_text(json.dumps(started))
    (made.run_dir / "metrics.jsonl").write_text('{"event":"step","step":7,"loss":2.5,"samples_per_s":31.0}\n')
    return made.id


def test_json_has_states_hours_and_figures(running: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["top", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["runs"]
    assert (row["run"], row["state"], row["final"]) == (running, "running", False)
    assert 0.49 < row["used"] < 0.52
    assert row["most"] == 0.5
    assert (row["metrics"]["steps"], row["metrics"]["last_loss"]) == (7, 2.5)


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_it_fits_the_terminal_and_has_no_colour_in_a_pipe(
    running: str, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    capsys.readouterr()
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["top"]) == 0  # no terminal: once
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= columns
    assert running[:20] in out
    assert "loss 2.5000" in " ".join(out.split())
    assert "1 active, 0 ended" in out


def test_ended_runs_leave_the_list_after_a_while(
    running: str, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    run_dir = Path(next(store.summaries()).run_dir)
    now = time.time()
    record = {"job_id": "1000", "attempt": 1, "code": 0, "reason": "done", "started": now - 9000, "ended": now - 7200}
    (run_dir / "exit.json").write_text(json.dumps(record))
    capsys.readouterr()
    assert main(["top", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"runs": []}
    assert main(["top", "--json", "--recent", "3"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["runs"]
    assert (row["state"], row["used"]) == ("done", 0.5)


def test_the_scheduler_is_asked_no_more_often_than_its_interval(
    running: str, fake: FakeScheduler, slurm_plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["top", "--once"])
    monkeypatch.setenv("MAPLE_POLL_SECONDS", "60")
    before = fake.queries
    for _ in range(5):
        main(["top", "--once"])
    assert fake.queries <= before + 1


@pytest.mark.timeout(60)
@pytest.mark.parametrize("key", [b"q", b"\x03"])
def test_a_key_ends_it_and_the_terminal_is_as_before(tmp_path: Path, key: bytes) -> None:
    import termios

    leader, follower = pty.openpty()
    before = termios.tcgetattr(follower)
    code = "import sys; from maple_parsl.cli import main; sys.exit(main(['top', '--every', '0.5']))"
    environment = {**os.environ, "MAPLE_HOME": str(tmp_path), "TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=environment,
        start_new_session=True,
        preexec_fn=_take_terminal,
    )
    seen = b""
    end = time.monotonic() + 40
    while b"0 active" not in seen and time.monotonic() < end:
        if select.select([leader], [], [], 1)[0]:
            seen += os.read(leader, 4096)
    os.write(leader, key)
    while process.poll() is None and time.monotonic() < end:
        if select.select([leader], [], [], 0.2)[0]:
            seen += os.read(leader, 4096)
    assert process.poll() == (0 if key == b"q" else 130), seen
    assert b"\x1b[?1049h" in seen
    assert termios.tcgetattr(follower)[3] == before[3]
    os.close(leader)
    os.close(follower)


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
