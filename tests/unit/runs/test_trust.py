"""Other people's site files: what they would run or charge is shown once before it is used."""

from __future__ import annotations

from pathlib import Path

import pytest

import maple_parsl
from maple_parsl.errors import LimitError
from maple_parsl.runs.store import Store

from .conftest import FIELDS, WORDS, FakeScheduler

GROUP = """\
extends = "delta"
[environments.default]
base = ["module load ours/1.0"]
[environments.default.exports]
LD_PRELOAD = "/shared/libours.so"
[defaults]
account = "theirs-delta-gpu"
"""


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "group"
    folder.mkdir()
    (folder / "delta.toml").write_text(GROUP)
    monkeypatch.setenv("MAPLE_SITE_PATH", str(folder))
    return folder / "delta.toml"


def test_shown_once_and_again_when_changed(
    fake: FakeScheduler, store: Store, group: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    def ask(question: str) -> bool:
        asked.append(question)
        return len(asked) != 1

    with pytest.raises(LimitError, match="Nobody has looked"):
        maple_parsl.run(*WORDS, **FIELDS)
    with pytest.raises(LimitError, match="not agreed"):
        maple_parsl.run(*WORDS, **FIELDS, ask=ask)
    assert not fake.submissions
    maple_parsl.run(*WORDS, **FIELDS, ask=ask)
    assert len(asked) == 2
    for line in ("module load ours/1.0", "LD_PRELOAD: /shared/libours.so", "account: theirs-delta-gpu", str(group)):
        assert line in asked[1]
    maple_parsl.run(*WORDS, **FIELDS)
    assert len(fake.submissions) == 2
    group.write_text(GROUP.replace("ours/1.0", "ours/2.0"))
    with pytest.raises(LimitError, match=r"ours/2\.0"):
        maple_parsl.run(*WORDS, **FIELDS)
    maple_parsl.run(*WORDS, **FIELDS, yes=True)
    assert "ours/2.0" in capsys.readouterr().err


def test_an_account_of_a_shared_file_is_said(home: Path, group: Path) -> None:
    fields = {key: value for key, value in FIELDS.items() if key != "account"}
    plan = maple_parsl.plan(*WORDS, **fields)
    assert plan.account == "theirs-delta-gpu"
    (finding,) = [found for found in plan.findings if found.rule == "shared-account"]
    assert str(group) in finding.message
    assert finding.severity == "warning"
    own = maple_parsl.plan(*WORDS, **FIELDS)
    assert "shared-account" not in {found.rule for found in own.findings}


def test_ones_own_file_and_the_catalogue_are_not_asked_about(fake: FakeScheduler, store: Store, home: Path) -> None:
    own = home.parent / "config" / "sites"
    own.mkdir(parents=True)
    (own / "delta.toml").write_text(GROUP)
    maple_parsl.run(*WORDS, **FIELDS)
    assert len(fake.submissions) == 1
