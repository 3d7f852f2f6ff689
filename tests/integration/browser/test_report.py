"""The page of a run, opened and clicked in a browser: on a desk and on a phone, offline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from maple_parsl.report import report
from tests.made_run import SECRET, failed_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def page_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MAPLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    path = tmp_path / "report.html"
    path.write_text(report(failed_run(tmp_path)), encoding="utf-8")
    return path


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_the_page_works_without_a_network(page_file: Path, chromium: Browser, width: int, scheme: str) -> None:
    context = chromium.new_context(
        viewport={"width": width, "height": 844}, color_scheme="dark" if scheme == "dark" else "light", offline=True
    )
    page = context.new_page()
    page.set_default_timeout(60_000)
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(page_file.as_uri())
    overflow = "document.documentElement.scrollWidth - window.innerWidth"
    assert page.evaluate(overflow) <= 0

    script = page.locator("details").first
    account = page.locator("code", has_text="--account=abcd-delta-gpu")
    assert not account.is_visible()
    script.locator("summary").first.click()
    assert account.is_visible()
    for summary in page.locator("summary").all():
        summary.evaluate("element => element.parentElement.open = true")
    assert page.evaluate(overflow) <= 0

    loss = page.locator(".curve").first
    said = loss.locator("output")
    before = said.inner_text()
    curve = loss.locator("svg")
    box = curve.bounding_box()
    assert box is not None
    curve.click(position={"x": box["width"] / 2, "y": box["height"] / 2})
    middle = said.inner_text()
    assert middle.startswith("step ")
    assert middle != before
    assert 300 < int(middle.split()[1].rstrip(":")) < 600
    page.keyboard.press("ArrowRight")
    assert said.inner_text() != middle

    text = page.content()
    assert SECRET not in text
    assert page.title().startswith("20250615-made")
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")
    assert asked == [page_file.as_uri()] or asked == [page_file.as_uri(), "data:,"]
    assert complaints == []
    context.close()
