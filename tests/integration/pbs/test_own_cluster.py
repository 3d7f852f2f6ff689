"""A PBS cluster probed by its commands, against STAND-INS that answer in the recorded form; no real PBS."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import maple_parsl
from maple_parsl.cli import main
from tests.testbeds.pbs.cluster import PbsStandIn

pytestmark = pytest.mark.timeout(120)


def test_probed_drafted_filled_in_and_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pbs = PbsStandIn(tmp_path / "pbs", queues={"short": "01:00:00"}, ncpus=32, ngpus=2)
    for name, value in {**pbs.environment, "MAPLE_CONFIG_HOME": str(tmp_path / "config")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("MAPLE_SITE", raising=False)
    assert main(["sites", "add", "plover", "--probe", "--scheduler", "pbs"]) == 0
    assert "kinds.gpu.vendor" in capsys.readouterr().out
    file = tmp_path / "config" / "sites" / "plover.toml"
    facts = tomllib.loads(file.read_text())
    assert [queue["name"] for queue in facts["queues"]["entry"]] == ["workq", "short"]
    assert (facts["kinds"]["gpu"]["nodes"], facts["kinds"]["gpu"]["gpus"]) == (3, 2)
    assert facts["scheduler"]["max_array"] == 10000
    assert "account" not in facts["scheduler"]
    assert main(["sites", "check", "plover"]) == 1  # placeholders are left
    plan = maple_parsl.plan(
        script="train.py", site="plover", nodes=2, walltime="30m", queue="short", account="demo", template="plain"
    )
    assert "#PBS -l select=2:ncpus=32:ngpus=2:mpiprocs=2" in plan.script
    assert [finding.rule for finding in plan.findings if finding.rule == "site-unfilled"]
