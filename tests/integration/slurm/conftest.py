"""The clusters of these tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.testbeds.slurm.fixtures import slurm, slurm_accounting

__all__ = ["slurm", "slurm_accounting"]

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests here go to one worker: a cluster is started once, and its tests leave it idle in between."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("slurm"))
