"""Agents answered by a fleet: only the route depends on who answers; with nobody there the rules answer alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from maple_parsl import api
from maple_parsl.agents import Answer
from maple_parsl.errors import ConfigurationError, TransportError
from maple_parsl.fleet import Fleet, Member
from maple_parsl.inference.fleet import FleetModel
from maple_parsl.settings import ModelSettings

WORDS = "fsdp train.py on 2 polaris nodes, 1 hour in debug, and let the Tidewater pot pay for it"
SETTINGS = ModelSettings(backend="globus", name="any", timeout=10)


class Way:
    """An endpoint with the model that reads the account."""

    def __init__(self, up: bool = True, dies: bool = False) -> None:
        self.up, self.dies = up, dies
        self.calls: list[int] = []

    def online(self, deadline: float = 1) -> bool:
        return self.up

    def metadata(self, deadline: float = 1) -> dict[str, Any]:
        return {"user_config_template": "engine: {provider: {type: LocalProvider}}"}

    def run(self, source: str, entry: str, arguments: tuple[Any, ...], deadline: float) -> Any:
        if self.dies:
            raise TransportError("a worker there died during the call")
        asked = json.loads(arguments[0])
        self.calls.append(len(asked["prompts"]))
        row = {"text": json.dumps({"account": "Tidewater"})}
        return json.dumps({"ok": True, "value": {"answers": [row for _ in asked["prompts"]]}})


def model(ways: Mapping[str, Way]) -> FleetModel:
    fleet = Fleet([Member(name, "id", "/m") for name in ways], connect=lambda member: ways[member.name])
    return FleetModel(SETTINGS, fleet)


def routed(answer: Answer) -> tuple[str, tuple[str, ...]]:
    (step,) = [each for each in answer.trace.steps if each.round == 2]
    return step.model, step.route


def told(answer: Answer) -> Any:
    said = answer.to_dict()
    del said["trace"]
    return json.loads(json.dumps(said).replace("/m@two", "/m@one"))


def test_the_trace_tells_the_route_and_nothing_else_depends_on_it() -> None:
    first = api.ask(WORDS, model=model({"one": Way(), "two": Way()}))
    second = api.ask(WORDS, model=model({"one": Way(dies=True), "two": Way()}))
    assert first.plan is not None
    assert first.plan.account == "Tidewater"
    assert routed(first)[0] == "/m@one"
    assert routed(second)[0] == "/m@two"
    assert [row.partition(" (")[0] for row in routed(second)[1]] == [
        "one: a worker there died during the call",
        "two: answered",
    ]
    assert told(first) == told(second)
    assert second.notices == ()


def test_with_no_endpoint_there_the_rules_answer_alone_and_it_is_noted() -> None:
    answer = api.ask(WORDS, model=model({"one": Way(up=False), "two": Way(dies=True)}))
    assert answer.plan is None
    assert [question.field for question in answer.questions] == ["account"]
    (notice,) = answer.notices
    assert "globus:any did not answer" in notice
    assert "one: offline" in notice
    assert notice in answer.to_dict()["notes"]


def test_questions_of_many_threads_travel_together() -> None:
    way = Way()
    asked = model({"one": way})
    with ThreadPoolExecutor(100) as pool:
        answers = list(pool.map(lambda _: api.ask(WORDS, model=asked), range(100)))
    assert all(answer.plan is not None and answer.plan.account == "Tidewater" for answer in answers)
    assert sum(way.calls) == 100
    schema = {"type": "object", "properties": {"account": {}}, "required": ["account"]}
    before = len(way.calls)
    with ThreadPoolExecutor(100) as pool:
        texts = list(pool.map(lambda n: asked.answer([{"role": "user", "content": str(n)}], schema).text, range(100)))
    assert texts == ['{"account": "Tidewater"}'] * 100
    assert len(way.calls) - before <= 5


def test_a_site_without_an_endpoint_of_the_user_s_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MAPLE_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("MAPLE_MODEL", "globus:any")
    with pytest.raises(ConfigurationError, match="inference_endpoint"):
        api.ask(WORDS)
