"""The same faults in other forms (other flags, launchers, schedulers), and correct scripts of every style."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from maple_parsl.rules import check, rules

ROWS = [json.loads(line) for line in (Path(__file__).parent / "variants.jsonl").read_text().splitlines()]
COVERED = {rule.fault_class for rule in rules().values()}
BAD = [row for row in ROWS if row["error_class"] in COVERED]
GOOD = [row for row in ROWS if row["error_class"] is None]


@pytest.mark.parametrize("row", BAD, ids=[f"{row['error_class']}-{i}" for i, row in enumerate(BAD)])
def test_a_variant_raises_its_class(row: dict[str, Any]) -> None:
    assert row["error_class"] in {finding.fault_class for finding in check(row["script"])}


@pytest.mark.parametrize("row", GOOD, ids=[f"good-{i}" for i, _ in enumerate(GOOD)])
def test_a_correct_script_has_no_error(row: dict[str, Any]) -> None:
    assert not [(f.rule, f.line, f.message) for f in check(row["script"]) if f.severity == "error"]
