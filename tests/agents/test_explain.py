"""Every line of every golden script has its reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from maple_parsl import cli
from maple_parsl.explain import explain
from tests import cases


@pytest.mark.parametrize("case", cases.SITES)
def test_every_line_of_every_golden_script_is_accounted_for(case: str) -> None:
    for paradigm in ("ddp", "fsdp", "tp", "pp", "zero", "3d"):
        plan = cases.plan(case, paradigm)
        rows = explain(plan)
        assert [row.text for row in rows] == plan.script.rstrip("\n").split("\n")
        assert all(row.why and row.layer for row in rows)
        shown = {row.text: row for row in rows}
        prefix = {"slurm": "#SBATCH", "pbs": "#PBS"}.get(plan.scheduler)
        for directive in plan.directives:
            assert shown[f"{prefix} {directive.option}"].why == directive.origin.why
        sourced = [row for row in rows if row.source]
        assert all(row.layer in ("site", "template", "configured") for row in sourced)
        assert plan.scheduler == "none" or sourced


def test_explain_reads_a_plan_file_and_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = cases.plan("polaris")
    file = tmp_path / "plan.json"
    file.write_text(plan.to_json())
    assert cli.main(["explain", str(file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["lines"]) == plan.script.count("\n")
    assert cli.main(["explain", "ddp t.py on polaris 1 node debug 10m account abc", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["trace"][0]["agent"] == "extraction"
    assert cli.main(["explain", str(file)]) == 0
    assert "always here" in capsys.readouterr().out
    file.write_text("[]")
    assert cli.main(["explain", str(file)]) == 3
