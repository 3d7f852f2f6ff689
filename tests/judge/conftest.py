"""One sandbox for these tests; where scripts cannot be contained, that is a failure under CI."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from maple_parsl.judge.sandbox import Sandbox


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as box:
        yield box
