"""The verbs: words, options, JSON, exit codes."""

from __future__ import annotations

import json
import os
import re
import stat
import time
from pathlib import Path
from typing import Any

import pytest

import maple_parsl
from maple_parsl.cli import main
from maple_parsl.cli.options import request_of
from maple_parsl.errors import RequestError, SubmissionError
from maple_parsl.plan import Plan
from maple_parsl.runs.store import Store

from .conftest import FakeScheduler

DELTA = "gpt ddp delta --nodes 1 --gpus-per-node 1 -t 30m -A abcd-delta-gpu -q gpuA100x4 --memory 16G".split()


def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_words_and_options() -> None:
    assert request_of({"words": ["gpt", "ddp", "delta"]}).site == "delta"
    assert request_of({"words": ["delta"], "script": "t.py"}).site == "delta"
    assert request_of({"words": ["fsdp", "delta"], "script": "t.py"}).paradigm == "fsdp"
    assert request_of({"words": ["gpt", "ddp"], "site": "x"}).model == "gpt"
    assert request_of({"words": ["gpt"], "site": "x", "paradigm": "tp"}).model == "gpt"
    with pytest.raises(RequestError, match="arguments of your program follow --"):
        request_of({"words": ["gpt", "ddp", "delta", "extra"]})
    with pytest.raises(RequestError, match="NAME=VALUE"):
        request_of({"words": [], "env": ["X"]})
    full = request_of(
        {
            "words": None,
            "script": "t.py",
            "module": ["a", "b"],
            "venv": "/v",
            "bind": None,
            "env": ["A=1", "B=x=y"],
            "directive": ["--constraint=scratch"],
            "launcher_arg": ["--verbose"],
            "dp": 2,
            "exclusive": False,
            "requeue": True,
            "snapshot": False,
        },
        ("--lr", "3e-4"),
    )
    assert full.environment.modules == ("a", "b")
    assert full.env == {"A": "1", "B": "x=y"}
    assert (full.directives, full.launcher_args) == (("--constraint=scratch",), ("--verbose",))
    assert (full.parallelism.dp, full.exclusive, full.requeue, full.snapshot) == (2, False, True, False)
    assert full.args == ("--lr", "3e-4")


def test_plan_json(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *DELTA, "--json"]) == 0
    found = printed(capsys)
    assert {"script", "request", "ranks", "findings", "plan"} <= set(found)
    assert found["request"]["walltime"] == "00:30:00"
    assert Plan.from_json(json.dumps(found["plan"])).script == found["script"]


def test_plan_for_people_and_for_files(
    home: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["plan", *DELTA, "--script-only"]) == 0
    script = capsys.readouterr().out
    assert script.startswith("#!/bin/bash")
    assert main(["plan", *DELTA]) == 0
    out = capsys.readouterr().out
    assert "at most 0.50 node-hours" in " ".join(out.split())  # however wide the terminal
    assert "#SBATCH --job-name" in out
    assert "local rank" in out
    assert "the same in every script" in out
    assert "maple_forward()" not in out
    assert "nothing was submitted" in out.splitlines()[-1]
    assert main(["plan", *DELTA, "--why"]) == 0
    out = capsys.readouterr().out
    assert "#SBATCH" not in out
    assert re.search(r"--gpus-per-node=1 +how GPUs are asked for here +\d+ *\n", out)
    assert re.search(r"^\d+  ncsa/Delta_doc .*, checked \d{4}-", out, re.M)
    assert main(["plan", *DELTA, "--map", "--map-svg", str(tmp_path / "map.svg")]) == 0
    assert "local rank" in capsys.readouterr().out
    assert (tmp_path / "map.svg").read_text().startswith("<svg")
    assert main(["plan", *DELTA, "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "job.sh").read_text() == script
    assert (tmp_path / "out" / "miniapps" / "train.py").exists()
    assert stat.S_IMODE((tmp_path / "out" / "job.sh").stat().st_mode) == 0o755


def test_a_failed_run_shows_the_end_of_its_log(
    home: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("pass\n")
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'no torch here' >&2\nexit 3\n")
    python.chmod(0o755)
    assert main(["run", "--script", "train.py", "--site", "local", "--python", str(python)]) == 10
    out = capsys.readouterr().out
    assert "the end of its log" in out
    assert "  no torch here" in out


def test_arguments_after_the_dashes_are_the_programs(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "plan",
        "--script",
        "train.py",
        "--site",
        "delta",
        *DELTA[3:],
        "--json",
        "--",
        "--lr",
        "3e-4",
        "--json",
        "a b",
    ]
    assert main(words) == 0
    assert printed(capsys)["request"]["args"] == ["--lr", "3e-4", "--json", "a b"]


@pytest.mark.parametrize(
    "words,code,text",
    [
        (["plan", "gtp", "ddp", "local"], 2, "did you mean gpt"),
        (["plan", "gpt", "ddp", "polarsi"], 2, "polaris"),
        (["plan", "gpt", "ddp", "delta"], 4, "walltime"),
        (["plan", "gpt", "ddp"], 2, "no site stated"),
        (["plan", *DELTA, "-t", "10:30"], 2, "walltime"),
        (["run", *DELTA, "--account", "a;touch x"], 2, "account"),
        (["plan", "gpt", "ddp", "local", "--nodes", "two"], 2, "--nodes"),
        (["plan", "gpt", "ddp", "local", "--no-such"], 2, "no-such"),
        (["status", "nothing"], 2, "unknown run"),
    ],
)
def test_bad_input_is_one_message(
    home: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, text: str
) -> None:
    assert main(words) == code
    err = capsys.readouterr().err
    assert text in err
    assert "Traceback" not in err


def test_run_status_logs_cancel_runs(fake: FakeScheduler, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *DELTA, "--json"]) == 0
    started = printed(capsys)
    assert started["job_id"] == "1000"
    assert started["state"] == "pending"
    run_id = started["run"]
    assert main(["status", run_id[-12:-4], "--json"]) == 0
    status = printed(capsys)
    for key in ("state", "job_id", "exit", "reason", "explanation", "start_estimate"):
        assert key in status
    assert main(["status"]) == 0
    assert run_id in capsys.readouterr().out
    folder = Path(started["run_dir"])
    (folder / "log.txt").write_text("hello \x1b[31mred\n")
    assert main(["logs", run_id]) == 0
    assert "hello" in capsys.readouterr().out
    assert main(["logs", run_id, "--json", "--offset", "6"]) == 0
    assert printed(capsys)["offset"] == (folder / "log.txt").stat().st_size
    assert main(["cancel", run_id]) == 0
    assert "told to end" in capsys.readouterr().out
    assert fake.cancelled == ["1000"]
    record = {"job_id": "1000", "attempt": 1, "code": 0, "reason": "done", "signal": None, "first_failure": None}
    (folder / "exit.json").write_text(json.dumps({**record, "started": 1, "ended": 2, "hosts": "n"}))
    assert main(["runs", "--json"]) == 0
    assert printed(capsys)["runs"][0]["state"] == "done"
    assert main(["status"]) == 0
    assert "no active runs" in capsys.readouterr().out
    (store.runs / run_id / "run.json").write_text("{")
    assert main(["runs"]) == 0
    assert "unreadable" in capsys.readouterr().out
    assert main(["status", run_id]) == 7
    assert "damaged" in capsys.readouterr().err


def test_run_says_what_it_costs_and_asks(
    fake: FakeScheduler, store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    large = ["run", *DELTA, "-t", "20h"]
    assert main(large) == 8
    text = capsys.readouterr().err
    assert "account abcd-delta-gpu, queue gpuA100x4: 1 node x 20:00:00 = at most 20.00 node-hours" in text
    assert "--yes" in text
    assert fake.submissions == []
    assert main([*large, "--yes", "--max-node-hours", "19"]) == 8
    assert main([*large, "--yes"]) == 0
    assert len(fake.submissions) == 1


def test_exit_code_of_a_refusal_and_of_a_failure(
    fake: FakeScheduler, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(plan: Plan) -> None:
        raise SubmissionError("sbatch refused the job: Invalid account\x1b[2J")

    fake.on_submit = refuse
    assert main(["run", *DELTA]) == 5
    assert "Invalid account" in capsys.readouterr().err

    def fail_at_once(plan: Plan) -> None:
        assert plan.place
        record = {"job_id": "1000", "attempt": 1, "code": 7, "reason": "failed", "signal": None}
        first = {"rank": 1, "host": "n", "code": 7}
        ended = time.time()
        text = json.dumps({**record, "first_failure": first, "started": 1, "ended": ended, "hosts": "n"})
        Path(plan.place.run_dir, "exit.json").write_text(text)

    fake.on_submit = fail_at_once
    assert main(["run", *DELTA, "--wait", "--json"]) == 10
    found = printed(capsys)
    assert (found["state"], found["outcome"]["rank"], found["outcome"]["code"]) == ("failed", 1, 7)
    assert main(["run", *DELTA, "--follow"]) == 10
    assert "rank 1 on n failed first, with code 7" in capsys.readouterr().out


def test_resubmit(fake: FakeScheduler, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    run = maple_parsl.run(*DELTA[:3], dry_run=True, **_fields())
    assert main(["run", "--resubmit", run.id]) == 0
    assert fake.submissions == [f"maple-{run.id}"]
    assert main(["run", "--resubmit", run.id]) == 2
    assert "has, or may have, a job" in capsys.readouterr().err


def test_a_store_that_cannot_be_written(
    fake: FakeScheduler, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.write_text("a file")
    assert main(["run", *DELTA]) == 7
    assert str(home) in capsys.readouterr().err
    assert fake.submissions == []
    assert os.listdir("maple-runs") == []


def _fields() -> dict[str, Any]:
    from .conftest import FIELDS

    return FIELDS


def test_runs_can_be_read_on_a_narrow_terminal(
    home: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")
    (tmp_path / "train.py").write_text("pass\n")
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 3\n")
    python.chmod(0o755)
    assert main(["run", "--script", "train.py", "--site", "local", "--python", str(python)]) == 10
    capsys.readouterr()
    assert main(["runs"]) == 0
    first, *rest = capsys.readouterr().out.rstrip().split("\n")
    assert re.fullmatch(r"\S+  failed  \d+ \w+ *", first)
    assert rest[0].startswith("  train.py ddp on 1 node")
    assert max(len(line) for line in rest) <= 60
