"""``maple correct RUN``: from a run's own log to changes of its request."""

from __future__ import annotations

import json
import time

import pytest

import maple_parsl
from maple_parsl.cli import main
from maple_parsl.runs.run import Run
from maple_parsl.runs.store import Store

from .conftest import FIELDS, WORDS, FakeScheduler


def failed(log: str) -> Run:
    run = maple_parsl.run(*WORDS, **FIELDS)
    record = {"job_id": run.job_id, "attempt": 1, "code": 1, "reason": "failed", "signal": None}
    first = {"rank": 0, "node_rank": 0, "host": "n1", "code": 1}
    more = {"first_failure": first, "started": time.time() - 60, "ended": time.time(), "hosts": "n1"}
    (run.run_dir / "exit.json").write_text(json.dumps({**record, **more}))
    (run.run_dir / "log.txt").write_text(log)
    return run


def test_a_run_out_of_memory(fake: FakeScheduler, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    run = failed("slurmstepd: error: Detected 1 oom_kill event in StepId=1.0. Some of the step tasks have been OOM\n")
    assert main(["correct", run.id, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["cause"]["class"] == "out_of_memory"
    assert told["flags"] == "--memory 32G"
    assert [change["field"] for change in told["changed_statements"]] == ["memory"]
    changed = [row for row in told["diff"].splitlines() if row[:1] in "+-" and row[:3] not in ("---", "+++")]
    assert changed == ["-#SBATCH --mem=16G", "+#SBATCH --mem=32G"]
    assert len(fake.submissions) == 1, "correction never submits"
    assert main(["correct", run.id]) == 0
    shown = capsys.readouterr()
    assert "you had said 16G" in shown.err
    assert "the same with maple run: --memory 32G" in shown.err


def test_a_run_whose_program_failed(fake: FakeScheduler, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    run = failed('Traceback (most recent call last):\n  File "t.py", line 1, in <module>\nValueError: bad\n')
    assert main(["correct", run.id]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "cannot, because: the program is at fault" in shown.err


def test_neither_a_file_nor_a_run(home: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["correct", "nothing-of-that-name"]) == 2
    assert "no such file" in capsys.readouterr().err
