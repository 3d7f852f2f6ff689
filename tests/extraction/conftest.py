from __future__ import annotations

import pytest

from maple_parsl.catalogue import Catalogue


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    return Catalogue.load({})
