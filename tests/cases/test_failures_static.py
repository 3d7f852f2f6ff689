"""Fragments of publicly reported failures: the bad one raises its class, the good one does not."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from maple_parsl.rules import check, rules

HERE = Path(__file__).parent
RECORDS = [json.loads(line) for line in (HERE / "fragments.jsonl").read_text().splitlines()]
COVERED = {rule.fault_class for rule in rules().values()}


def _complete() -> Any:
    spec = importlib.util.spec_from_file_location("completing", HERE / "complete.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.complete


complete = _complete()


def fragments(key: str) -> list[Any]:
    return [
        pytest.param(record, id=f"{record['error_class']}-{record['source_url'].rpartition('github.com/')[2]}")
        for record in RECORDS
        if record[key] and record["static_detectable"] == "yes" and record["error_class"] in COVERED
    ]


def classes(fragment: str, scheduler: str) -> set[str]:
    return {finding.fault_class for finding in check(complete(fragment, scheduler))}


@pytest.mark.parametrize("record", fragments("bad_fragment"))
def test_a_bad_fragment_raises_its_class(record: dict[str, Any]) -> None:
    assert record["error_class"] in classes(record["bad_fragment"], record["scheduler"])


@pytest.mark.parametrize("record", fragments("good_fragment"))
def test_a_good_fragment_does_not(record: dict[str, Any]) -> None:
    assert record["error_class"] not in classes(record["good_fragment"], record["scheduler"])
