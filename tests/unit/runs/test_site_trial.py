"""``maple sites test``: what its preflight found decides what is said of the site."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from maple_parsl.cli import main
from maple_parsl.plan import Plan
from maple_parsl.runs.store import Store

from .conftest import FakeScheduler

LINE = ["sites", "test", "delta", "-N", "1", "--gpus-per-node", "1", "-A", "abcd-delta-gpu", "-q", "gpuA100x4"]


def said(*found: tuple[str, str, str]) -> list[dict[str, str]]:
    return [{"class": name, "severity": severity, "message": message} for name, severity, message in found]


@pytest.mark.parametrize(
    ("verdict", "code", "words"),
    [
        ({"verdict": "pass", "ranks": 1, "findings": []}, 0, "delta works: all 1 ranks on 1 node met"),
        (
            {"verdict": "warn", "ranks": 1, "findings": said(("CPU_GEOMETRY", "warning", "cores away"))},
            0,
            "with what is said above",
        ),
        (
            {"verdict": "warn", "ranks": 1, "findings": said(("PREFLIGHT", "note", "no torch"))},
            10,
            "could not be done in full",
        ),
        (None, 10, "could not be done in full"),
    ],
    ids=["pass", "warning", "no-torch", "no-verdict"],
)
def test_the_verdict_decides(
    fake: FakeScheduler,
    store: Store,
    capsys: pytest.CaptureFixture[str],
    verdict: dict[str, Any] | None,
    code: int,
    words: str,
) -> None:
    plans: list[Plan] = []

    def ends(plan: Plan) -> None:
        assert plan.place is not None
        plans.append(plan)
        record = {"job_id": "1", "attempt": 1, "code": 0, "reason": "done", "signal": None, "first_failure": None}
        times = {"started": time.time() - 20, "ended": time.time(), "hosts": "n1"}
        (Path(plan.place.run_dir) / "exit.json").write_text(json.dumps({**record, **times, "preflight": verdict}))

    fake.on_submit = ends
    assert main(LINE) == 8
    shown = capsys.readouterr()
    assert "at most 0.17 node-hours" in shown.err
    assert not plans, "nothing is submitted before the cost was confirmed"
    assert main([*LINE, "--yes"]) == code
    assert words in capsys.readouterr().out
    assert [plan.request.preflight for plan in plans] == ["only"]
