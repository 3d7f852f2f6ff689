"""What the preflight makes of what the ranks say, and where it stands in plans, scripts and records."""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from maple_parsl.job import preflight
from maple_parsl.plan import Plan
from maple_parsl.request import Request
from maple_parsl.runs.evidence import Evidence, gather
from maple_parsl.runs.state import Facts, RunState, Seen, resolve
from maple_parsl.runs.words import explain
from tests import cases

WANTED = argparse.Namespace(nodes=2, per_node=2, paradigm="ddp", cores="0-1/2-3", seconds=60)


def said(rank: int, **more: Any) -> dict[str, Any]:
    node, local = divmod(rank, 2)
    return {
        "rank": rank, "local_rank": local, "place": local, "world": 4, "host": f"n{node}", "node": f"n{node} x",
        "cores": "0-1" if local == 0 else "2-3", "master": "n0:29500", "stage": "done",
        "device": f"GPU-{rank}", "sure": True, "seen": 2, **more,
    }  # fmt: skip


def found(reports: list[dict[str, Any]], complete: bool = True) -> list[tuple[str, str]]:
    return [(item["class"], item["severity"]) for item in preflight.judge(reports, WANTED, complete)]


def test_a_launch_as_planned_has_no_finding() -> None:
    assert found([said(rank) for rank in range(4)]) == []


@pytest.mark.parametrize(
    "reports,expected",
    [
        ([said(0, world=1)] * 4, ("LAUNCHER_TASK_MISMATCH", "error")),
        ([said(rank, world=8) for rank in range(4)], ("LAUNCHER_TASK_MISMATCH", "error")),
        ([said(rank) for rank in range(3)], ("LAUNCHER_TASK_MISMATCH", "error")),
        ([said(rank, node="n0 x", host="n0") for rank in range(4)], ("LAUNCHER_TASK_MISMATCH", "error")),
        ([said(rank, node=f"n{rank % 2} x") for rank in range(4)], ("LAUNCHER_TASK_MISMATCH", "warning")),
        ([said(rank, device=f"GPU-{rank // 2}") for rank in range(4)], ("GPU_VISIBILITY", "error")),
        ([said(rank, device="0", sure=False) for rank in range(4)], ("GPU_VISIBILITY", "warning")),
        ([said(rank, seen=1) for rank in range(4)], ("GPU_VISIBILITY", "warning")),
        ([said(rank, cores="4-5") for rank in range(4)], ("CPU_GEOMETRY", "warning")),
        ([said(rank, cores="0") for rank in range(4)], ("CPU_GEOMETRY", "warning")),
        ([said(rank, master="localhost:1") for rank in range(4)], ("RDZV_ENDPOINT", "error")),
        ([said(rank, master=f"n{rank // 2}:1") for rank in range(4)], ("RDZV_ENDPOINT", "error")),
        (
            [said(0, refused=["PORT_COLLISION", "error", "taken"]), said(1), said(2), said(3)],
            ("PORT_COLLISION", "error"),
        ),
    ],
)
def test_each_fault_is_named(reports: list[dict[str, Any]], expected: tuple[str, str]) -> None:
    assert expected in found(reports)


def test_ranks_that_are_not_seen_yet_are_no_fault() -> None:
    assert found([said(0), said(3)], complete=False) == []


@pytest.mark.parametrize(
    "reports,expected",
    [
        ([said(r, stage="meeting") for r in range(4)], ("RDZV_ENDPOINT", "error")),
        ([said(r, stage="meeting" if r else "adding") for r in range(4)], ("RDZV_ENDPOINT", "error")),
        ([said(r, stage="meeting") for r in range(2)], ("LAUNCHER_TASK_MISMATCH", "error")),
        ([said(r, stage="adding") for r in range(4)], ("NETWORK_IFACE", "error")),
        ([said(r, stage="importing" if r else "meeting") for r in range(4)], ("PREFLIGHT", "note")),
        ([said(r, stage="stepping") for r in range(4)], ("PREFLIGHT", "note")),
        ([said(r, stage="meeting", own_fault=True, error="no backend") for r in range(4)], ("PREFLIGHT", "note")),
    ],
)
def test_how_far_the_ranks_came_is_told_apart(reports: list[dict[str, Any]], expected: tuple[str, str]) -> None:
    (item,) = preflight.unfinished(reports, WANTED)
    assert (item["class"], item["severity"]) == expected


def test_only_several_nodes_of_a_scheduler_are_tried_unasked() -> None:
    several, one, local = cases.plan("perlmutter"), cases.plan("perlmutter", nodes=1), cases.plan("local")
    assert several.preflight is not None
    assert several.preflight.action == "stop"
    assert one.preflight is None
    assert local.preflight is None
    assert cases.plan("perlmutter", preflight=False).preflight is None
    warned = cases.plan("perlmutter", nodes=1, preflight="warn")
    assert warned.preflight is not None
    assert "maple_preflight warn 60 srun" in warned.script
    assert Plan.from_json(warned.to_json()) == warned


def test_alone_it_starts_no_training() -> None:
    script = cases.plan("aurora", preflight="only").script
    assert "maple_preflight only 60 mpiexec" in script
    assert "maple_launch mpiexec" not in script
    assert "--cores 1-51,105-155/" in script  # of the site's map, for processes bound one by one


def test_a_yes_or_no_is_understood() -> None:
    assert Request.of(preflight=True).preflight == "stop"
    assert Request.of(preflight=False).preflight == "off"


def test_a_stopped_run_says_what_was_found(tmp_path: Path) -> None:
    verdict = {
        "verdict": "stop",
        "findings": [
            {"class": "CPU_GEOMETRY", "severity": "warning", "message": "cores"},
            {"class": "RDZV_ENDPOINT", "severity": "error", "message": "they cannot meet"},
        ],
    }
    record = {
        "format": 1, "job_id": "7", "attempt": 1, "code": 76, "reason": "preflight", "signal": None,
        "first_failure": None, "preflight": verdict, "started": 1, "ended": 30, "hosts": "n[0-1]",
    }  # fmt: skip
    (tmp_path / "exit.json").write_text(json.dumps(record))
    evidence = gather(tmp_path)
    known = Facts(submitted_job="7")
    resolved = resolve(known, evidence, Seen(), 40)
    assert resolved.state is RunState.FAILED
    assert "they cannot meet [RDZV_ENDPOINT]; cores [CPU_GEOMETRY]" in explain(resolved, known, evidence)


def test_a_watchdog_is_in_the_script_only_where_asked_for() -> None:
    from maple_parsl.script.reader import read

    asked = cases.plan("perlmutter", watchdog="10m", watchdog_action="stop")
    assert "MAPLE_WATCHDOG=600 MAPLE_WATCH_STOP=1 MAPLE_WORLD=8" in asked.script
    assert read(asked.script).faults == ()
    assert "MAPLE_WATCHDOG=" not in cases.plan("perlmutter").script
    done = subprocess.run(["shellcheck", "-s", "bash", "-"], input=asked.script, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_warning_is_seen_while_the_training_runs(tmp_path: Path) -> None:
    (tmp_path / "started.json").write_text('{"job_id": "7", "attempt": 1, "host": "n0", "started": 1}')
    marks = tmp_path / "attempts" / "1"
    marks.mkdir(parents=True)
    (marks / "verdict.json").write_text('{"verdict": "warn", "findings": []}')
    evidence: Evidence = gather(tmp_path)
    assert evidence.preflight == {"verdict": "warn", "findings": []}
