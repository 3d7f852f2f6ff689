"""A ``~`` means the home where the job runs; folders that are not there are said to be so."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from maple_parsl.errors import ConfigurationError, RequestError
from maple_parsl.folders import current, expanded
from maple_parsl.plan import Plan
from maple_parsl.shell import path, word
from tests import cases


def test_the_home_is_filled_in_where_the_job_runs() -> None:
    software = {"venv": "~/my env", "python": "~/bin/py", "container": "~/i.sif", "engine": "apptainer"}
    plan = cases.plan("delta", script="~/a b/t.py", environment={**software, "binds": ("~/d:/d",)})
    for text in ("source \"$HOME\"'/my env/bin/activate'", '"$HOME"/bin/py', '"$HOME"/i.sif', '"$HOME"/d:/d'):
        assert text in plan.script
    assert "\"$HOME\"'/a b/t.py'" in plan.script
    assert Plan.model_validate_json(plan.model_dump_json(by_alias=True)).script == plan.script


@pytest.mark.parametrize("text", ["~", "~/", "~/a b", "~/$(x)", "/~/a", "a~", "~/'"])
def test_a_shell_reads_the_same_path(text: str) -> None:
    said = subprocess.run(
        ["bash", "-c", f"printf %s {word(path(text))}"],
        env={"HOME": "/h o"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said.rstrip("/") == text.replace("~", "/h o", 1 if text.startswith("~") else 0).rstrip("/")


def test_somebody_elses_home_is_not_guessed() -> None:
    with pytest.raises(RequestError, match="whole path"):
        cases.request("delta", script="~nosuch/t.py")
    with pytest.raises(ConfigurationError, match="MAPLE_HOME is '~nosuch/x'"):
        expanded("~nosuch/x", "MAPLE_HOME")


def test_a_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ConfigurationError, match="current folder"):
        current()
    monkeypatch.chdir(tmp_path)
