"""Many spellings of each kind of fault (launchers, schedulers, options, functions, loops), and correct scripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from maple_parsl.finding import Finding
from maple_parsl.rules import CLASSES, check
from tests import cases

ROWS = [json.loads(line) for line in (Path(__file__).parent / "fragments3.jsonl").read_text("utf-8").splitlines()]


def found(row: dict[str, Any]) -> list[Finding]:
    return check(row["script"].encode(), cases.site(row["site"]) if "site" in row else None)


@pytest.mark.parametrize("name", CLASSES)
def test_every_spelling_of_a_fault_raises_its_class(name: str) -> None:
    rows = [row for row in ROWS if row["error_class"] == name and row["kind"] == "bad"]
    assert len(rows) >= 3
    missed = [row["script"] for row in rows if name not in {finding.fault_class for finding in found(row)}]
    assert not missed


@pytest.mark.parametrize("name", [*CLASSES, "ANY"])
def test_correct_scripts_raise_neither_the_class_nor_an_error(name: str) -> None:
    """``ANY``: correct scripts of many styles, which raise no error of any class."""
    for row in ROWS:
        if row["error_class"] == name and row["kind"] == "good":
            wrong = [f for f in found(row) if f.fault_class == name or f.severity == "error"]
            assert not wrong, (row["script"], [(f.rule, f.line, f.message) for f in wrong])
