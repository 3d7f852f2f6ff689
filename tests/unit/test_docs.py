"""Documentation: links lead somewhere, and what it names exists."""

from __future__ import annotations

import re

from maple_parsl import errors
from tests.cases import ROOT
from tests.tools import docs


def test_links_lead_somewhere() -> None:
    assert docs.broken() == []


def test_exit_codes_are_the_ones_documented() -> None:
    text = (ROOT / "docs" / "exit_codes.md").read_text()
    for name in dir(errors):
        found = getattr(errors, name)
        if isinstance(found, type) and issubclass(found, errors.MapleError) and found is not errors.MapleError:
            row = next((row for row in text.split("\n") if f"`{name}`" in row), "")
            assert row.startswith(f"| {found.exit_code} |"), name


def test_every_verb_of_the_readme_exists() -> None:
    from maple_parsl.cli import VERBS

    text = (ROOT / "README.md").read_text()
    for verb in set(re.findall(r"^\s+maple ([a-z]+)", text, re.M)):
        assert verb in VERBS, verb
