"""The program that answers agents, with a real model: tiny, its weights from a seed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from maple_parsl.fleet import worker_source
from tests import tiny_model

SCHEMA = {
    "type": "object",
    "properties": {"site": {"enum": ["polaris", "aurora"]}, "nodes": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["site", "nodes"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model.write(tmp_path_factory.mktemp("model"))


def load() -> Any:
    space: dict[str, Any] = {}
    exec(compile(worker_source(), "worker", "exec"), space)
    return space["entry"]


@pytest.mark.filterwarnings("ignore")
def test_answers_keep_to_the_schema_and_the_model_is_loaded_once(model: Path) -> None:
    sys.modules.pop("maple_models_of_this_worker", None)
    asked = {"op": "answer", "model": str(model), "schema": SCHEMA, "most": 64, "seconds": 120}
    prompts = [[{"role": "user", "content": f"where? {number}"}] for number in range(3)]
    texts = []
    for _ in range(2):  # each call brings its own copy of the program, as an endpoint does
        said = json.loads(load()(json.dumps({**asked, "prompts": prompts})))
        assert said["ok"], said
        assert said["value"]["loads"] == 1
        texts.append([row["text"] for row in said["value"]["answers"]])
    assert texts[0] == texts[1]
    for text in texts[0]:
        value = json.loads(text)
        assert value["site"] in ("polaris", "aurora")
        assert 1 <= value["nodes"] <= 9
    probe = json.loads(load()(json.dumps({"op": "probe", "model": str(model)})))["value"]
    assert probe["loaded"] == [str(model)]
    assert probe["model"] is True
    assert probe["device"] in ("cpu", "cuda", "xpu")
    assert all(probe["versions"].values())


@pytest.mark.filterwarnings("ignore")
def test_a_model_that_is_not_there_is_told_for_each_prompt(tmp_path: Path) -> None:
    asked = {"op": "answer", "model": str(tmp_path / "none"), "schema": SCHEMA, "most": 8, "seconds": 60}
    said = json.loads(load()(json.dumps({**asked, "prompts": [[{"role": "user", "content": "x"}]]})))
    assert said["ok"]
    assert "error" in said["value"]["answers"][0]
