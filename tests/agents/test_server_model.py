"""A model's answer fills gaps where it is grounded, and nothing else, however the server behaves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from maple_parsl import api
from maple_parsl.agents import Answer
from maple_parsl.inference.server import ServerModel
from maple_parsl.settings import ModelSettings
from tests.agents.stand_in import Reply, completion, says, serving

WORDS = "fsdp train.py on 2 polaris nodes, 1 hour in debug, and let the Tidewater pot pay for it"


def ask(words: str, url: str, **limits: Any) -> Answer:
    return api.ask(words, model=ServerModel(ModelSettings(backend="openai", name="stand-in", url=url, **limits)))


def step(answer: Answer) -> dict[str, Any]:
    return next(each.decision for each in answer.trace.steps if each.round == 2)


def test_a_grounded_answer_fills_a_gap_and_the_plan_is_made() -> None:
    assert api.ask(WORDS).reading.missing == ("account",)
    with serving(says(account="Tidewater")) as (url, asked):
        answer = ask(WORDS, url)
    assert answer.plan is not None
    assert answer.plan.account == "Tidewater"
    value = answer.reading.values["account"]
    assert (value.basis, WORDS[value.start : value.end]) == ("model", "Tidewater")
    assert step(answer)["filled"] == {"account": "Tidewater"}
    assert asked[0]["response_format"]["type"] == "json_schema"
    assert [each.tokens for each in answer.trace.steps if each.round == 2] == [{"read": 7, "written": 3}]


@pytest.mark.parametrize(
    "value,why",
    [
        ("Saltmarsh", "does not stand"),
        ("fsdp", "something else"),
        ("pot", "the word that asks"),
        ("$(id)", "no name"),
        ("Tide", "does not stand"),
    ],
)
def test_an_ungrounded_answer_is_refused_and_the_trace_says_why(value: str, why: str) -> None:
    with serving(says(account=value)) as (url, _):
        answer = ask(WORDS, url)
    assert answer.plan is None
    assert [question.field for question in answer.questions] == ["account"]
    assert why in step(answer)["refused"]["account"]


def test_a_model_never_changes_what_was_stated() -> None:
    with serving(says(account="Tidewater", nodes=99, queue="prod", site="aurora")) as (url, asked):
        answer = ask(WORDS, url)
    assert asked[0]["response_format"]["json_schema"]["schema"]["required"] == ["account"]
    assert answer.plan is not None
    assert (answer.plan.shape.nodes, answer.plan.queue, answer.plan.site) == (2, "debug", "polaris")


def test_a_complete_request_asks_no_model() -> None:
    with serving(says()) as (url, asked):
        assert ask(WORDS.replace("and let the Tidewater pot pay for it", "account abc"), url).plan is not None
    assert asked == []


BAD: dict[str, Reply] = {
    "other JSON": lambda body: b'{"hello": "world"}',
    "no JSON": lambda body: b"<html>busy</html>",
    "another schema": lambda body: completion(json.dumps({"account": "Tidewater", "command": "rm -rf /"})),
    "text": lambda body: completion("Sure! The account is Tidewater."),
    "a list": lambda body: completion("[1, 2]"),
    "a tool call": lambda body: completion(None, tool_calls=[{"function": {"name": "run", "arguments": "id"}}]),
    "tool call and text": lambda body: completion('{"account": "Tidewater"}', tool_calls=[{"id": 1}]),
    "huge output": lambda body: completion('{"account": "' + "x" * 5_000_000 + '"}'),
    "deep nesting": lambda body: completion("[" * 30_000),
    "nothing": lambda body: b"",
    "bytes": lambda body: bytes(range(256)),
    "a wrong type": lambda body: completion('{"account": 7}'),
    "a list of choices without one": lambda body: b'{"choices": []}',
}


@pytest.mark.parametrize("kind", BAD)
def test_a_malicious_server_gets_nothing_in(kind: str) -> None:
    with serving(BAD[kind]) as (url, _):
        answer = ask(WORDS, url)
    assert answer.plan is None
    assert "account" not in answer.reading.values
    assert [question.field for question in answer.questions] == ["account"]


def test_a_server_that_fails_is_slow_or_is_not_there_is_noted() -> None:
    with serving(says(account="Tidewater"), status=500) as (url, _):
        assert "status 500" in step(ask(WORDS, url))["failed"]
    with serving(says(account="Tidewater"), wait=1.0) as (url, _):
        assert "longer than" in step(ask(WORDS, url, timeout=0.2))["failed"]
    assert "cannot be asked" in step(ask(WORDS, url))["failed"]  # nobody listens there any more


def test_a_key_goes_to_the_server_and_not_into_the_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "very-secret")
    with serving(says(account="Tidewater")) as (url, _):
        monkeypatch.setenv("MAPLE_MODEL", f"openai:stand-in@{url}")
        answer = api.ask(WORDS)
    assert answer.plan is not None
    assert "very-secret" not in json.dumps(answer.to_dict())
