"""Fragments of publicly reported failures, on requests, environments and the file itself."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from maple_parsl.rules import check
from maple_parsl.site import Site
from tests import cases

HERE = Path(__file__).parent
RECORDS = [json.loads(line) for line in (HERE / "fragments2.jsonl").read_text().splitlines()]
CLASSES = frozenset(
    "SCRIPT_FORMAT DIRECTIVE_IGNORED DIRECTIVE_VAR_EXPANSION SCHED_DIALECT GPU_REQUEST GPU_VISIBILITY"
    " ACCOUNT_PARTITION_QOS QUEUE_LIMIT MISSING_REQUIRED_FIELD MEMORY ENV_NOT_ACTIVATED NETWORK_IFACE INTEL_TILE_CCL"
    " OFFLINE_NODE CONTAINER_REF SCHED_ENV_INHERIT CONTRADICTION INVALID_VALUE SECRET INJECTION".split()
)
# Whose documents a record is from: its fragment is for that site.
SITES = {"argonne-lcf/": "polaris", "olcf/": "frontier"}
# Needs facts of a site that is not in the catalogue.
UNKNOWN_SITE = frozenset(["qsub -l select=2:ncpus=48"])


def _complete() -> Any:
    spec = importlib.util.spec_from_file_location("completing", HERE / "complete.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.whole


whole = _complete()


def fragments(key: str, *detectable: str) -> list[Any]:
    return [
        pytest.param(record, id=f"{number}-{record['error_class']}")
        for number, record in enumerate(RECORDS)
        if record[key] and record["error_class"] in CLASSES and record["static_detectable"] in detectable
        if record[key] not in UNKNOWN_SITE
    ]


def classes(record: dict[str, Any], key: str) -> set[str]:
    source = record["source_url"] or ""
    site: Site | None = next((cases.site(name) for part, name in SITES.items() if part in source), None)
    return {finding.fault_class for finding in check(whole(record[key], record["scheduler"]), site)}


@pytest.mark.parametrize("record", fragments("bad_fragment", "yes"))
def test_a_bad_fragment_raises_its_class(record: dict[str, Any]) -> None:
    assert record["error_class"] in classes(record, "bad_fragment")


@pytest.mark.parametrize("record", fragments("good_fragment", "yes", "partial"))
def test_a_good_fragment_does_not(record: dict[str, Any]) -> None:
    assert record["error_class"] not in classes(record, "good_fragment")
