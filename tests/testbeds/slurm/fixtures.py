"""Fixtures for tests that need a real Slurm: a conftest.py imports them by name."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from .cluster import Testbed
from .config import BedConfig
from .packages import why_not

__all__ = ["slurm", "slurm_accounting"]


def require_testbed(accounting: bool = False) -> None:
    """Skip the test, with the remedy, where no testbed can start; in CI (CI=true) that is a failure."""
    reason = why_not(accounting)
    if reason is None:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def slurm() -> Iterator[Testbed]:
    """Four nodes with four GPUs each, without accounting (no sacct, no QOS). Tests leave it idle."""
    require_testbed()
    with Testbed(BedConfig()) as bed:
        yield bed


@pytest.fixture(scope="session")
def slurm_accounting() -> Iterator[Testbed]:
    """The same with accounts proj1 and proj2 and QOS low, normal and high."""
    require_testbed(accounting=True)
    with Testbed(BedConfig(accounting=True)) as bed:
        yield bed
