"""Documentation: links lead somewhere, and what it names exists."""

from __future__ import annotations

from pathlib import Path

import pytest

from maple_parsl import errors
from tests.cases import ROOT
from tests.tools import docs, failure_docs, site_docs


def test_links_lead_somewhere() -> None:
    assert docs.broken() == []


def test_exit_codes_are_the_ones_documented() -> None:
    text = (ROOT / "docs" / "exit_codes.md").read_text()
    for name in dir(errors):
        found = getattr(errors, name)
        if isinstance(found, type) and issubclass(found, errors.MapleError) and found is not errors.MapleError:
            row = next((row for row in text.split("\n") if f"`{name}`" in row), "")
            assert row.startswith(f"| {found.exit_code} |"), name


def test_every_command_line_is_one() -> None:
    assert docs.refused() == []
    lines = [words for page in docs.pages() for words in docs.commands(page.read_text(encoding="utf-8"))]
    assert len(lines) > 60
    assert {"plan", "run", "report", "top", "doctor"} <= {words[0] for words in lines}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("```\nmaple flan x\n```\n", "no such command"),
        ("    maple plan --nodess 2\n", "--nodess"),
        ("```\nmaple sites show\n```\n", "Missing parameter"),
        ("```\nmaple plan --nodes \\\n  many\n```\n", "many"),
        ("    maple check a.sh --fix && maple cancle x\n", "no such command"),
        ("say `maple run --forse`\n", "--forse"),
    ],
)
def test_a_wrong_command_line_is_found(text: str, why: str) -> None:
    (said,) = docs.faults(text)
    assert why in said


def test_a_wrong_link_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docs, "ROOT", tmp_path)
    (tmp_path / "a.md").write_text("# One Two\n[x](b.md) [y](a.md#one-two) [z](a.md#three) [w](https://example.org/)\n")
    assert docs.broken() == ["a.md: b.md", "a.md: a.md#three"]


def test_generated_pages_are_those_of_their_data() -> None:
    assert site_docs.stale() == [], "python -m tests.tools.site_docs writes them"
    text = failure_docs.text()
    assert failure_docs.PAGE.read_text(encoding="utf-8") == text, "python -m tests.tools.failure_docs writes it"


def test_site_pages_state_sources_and_no_path_of_a_machine() -> None:
    for file, text in site_docs.pages().items():
        assert str(ROOT) not in text, file
        if file.name not in ("index.md",):
            assert text.count("Source: ") == text.count("; checked on 20") > 1, file
