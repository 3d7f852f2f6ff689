"""One stand for all tests here; MAPLE_STAND names the folder of one that is up, for trying things out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.globus.client import Client
from tests.testbeds.globus import Stand, why_not


@pytest.fixture(scope="session")
def stand() -> Iterator[Stand]:
    """Three sites with real endpoints. Tests leave all of it up."""
    if reason := why_not():
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    if running := os.environ.get("MAPLE_STAND"):
        yield Stand.attach(Path(running))
        return
    with Stand() as made:
        yield made


@pytest.fixture
def client(stand: Stand, tmp_path: Path) -> Client:
    """A person outside the sites, with a store of their own."""
    return Client(stand, tmp_path)
