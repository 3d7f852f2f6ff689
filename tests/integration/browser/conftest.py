"""Chromium without a window and without a network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium") or shutil.which("google-chrome")
    assert found, "these tests need a browser: make system installs chromium"
    with sync_playwright() as driver:
        # Tests may run as root, where Chromium's own sandbox refuses to start; only pages made here are opened.
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"], timeout=90_000)
        yield browser
        browser.close()
