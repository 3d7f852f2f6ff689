"""The fleet's choices, with endpoints that are functions."""

from __future__ import annotations

import ast
import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from maple_parsl.errors import TransportError
from maple_parsl.fleet import Fleet, Member, worker_source
from maple_parsl.fleet.routing import Router

SCHEMA = {"type": "object", "properties": {"site": {"type": "string"}}, "required": ["site"]}
PROMPT = [{"role": "user", "content": "where?"}]
LOCAL = "engine:\n  provider:\n    type: LocalProvider\n"


class Way:
    """An endpoint whose worker is a function of the prompts."""

    def __init__(
        self, work: Callable[[list[Any]], list[Any]], online: bool = True, template: str | None = LOCAL
    ) -> None:
        self.work, self.is_online, self.template = work, online, template
        self.calls: list[int] = []

    def online(self, deadline: float = 1) -> bool:
        return self.is_online

    def metadata(self, deadline: float = 1) -> dict[str, Any]:
        return {"user_config_template": self.template}

    def run(self, source: str, entry: str, arguments: tuple[Any, ...], deadline: float) -> Any:
        asked = json.loads(arguments[0])
        if asked["op"] == "probe":
            return json.dumps({"ok": True, "value": {"device": "cpu"}})
        self.calls.append(len(asked["prompts"]))
        return json.dumps({"ok": True, "value": {"answers": self.work(asked["prompts"])}})


def right(prompts: list[Any]) -> list[Any]:
    return [{"text": json.dumps({"site": str(number)})} for number in range(len(prompts))]


def failing(prompts: list[Any]) -> list[Any]:
    raise TransportError("a worker there died")


def slow(seconds: float) -> Callable[[list[Any]], list[Any]]:
    def work(prompts: list[Any]) -> list[Any]:
        time.sleep(seconds)
        return right(prompts)

    return work


def fleet(ways: dict[str, Way], hours: float | None = None, hedge: float = 30) -> Fleet:
    members = [Member(name, name, "tiny", hours) for name in ways]
    return Fleet(members, hedge_seconds=hedge, connect=lambda member: ways[member.name])


def test_the_worker_s_program_compiles_for_python_3_9_and_imports_nothing_of_maple() -> None:
    tree = ast.parse(worker_source(), feature_version=(3, 9))
    assert "maple_parsl" not in worker_source()
    assert {"entry", "answer", "probe"} <= {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_a_hundred_prompts_are_one_call_and_answers_keep_their_order() -> None:
    ways = {"a": Way(right)}
    found = fleet(ways).answer([PROMPT] * 100, SCHEMA, 10)
    assert ways["a"].calls == [100]
    assert [json.loads(text)["site"] for text in found.texts] == [str(number) for number in range(100)]
    assert found.member == "a"


@pytest.mark.parametrize(
    "bad",
    [
        Way(failing),
        Way(right, online=False),
        Way(lambda prompts: []),
        Way(lambda prompts: [{"text": "no json"}]),
        Way(lambda prompts: [{"text": "{}"}]),
        Way(lambda prompts: [{"text": "[]"}]),
        Way(lambda prompts: [{"error": "out of memory"}]),
    ],
)
def test_what_fails_is_answered_by_the_other_and_the_trace_says_so(bad: Way) -> None:
    ways = {"a": bad, "b": Way(right)}
    found = fleet(ways).answer([PROMPT], SCHEMA, 10)
    assert found.member == "b"
    assert [step.member for step in found.trace] == ["a", "b"]


def test_a_late_answer_is_hedged() -> None:
    ways = {"a": Way(slow(5)), "b": Way(right)}
    began = time.monotonic()
    found = fleet(ways, hedge=0.2).answer([PROMPT], SCHEMA, 10)
    assert found.member == "b"
    assert time.monotonic() - began < 4
    assert [(step.member, step.what) for step in found.trace] == [
        ("a", "late, so the next was asked too"),
        ("b", "answered"),
    ]
    lost = [thread for thread in threading.enumerate() if thread.name == "maple-fleet"]
    assert lost
    assert all(thread.daemon for thread in lost)  # the program may end before they do


def test_nothing_that_would_start_a_block_is_asked_without_a_limit() -> None:
    for template in ("provider:\n  type: SlurmProvider\n", "type: PBSProProvider", None):
        ways = {"a": Way(right, template=template)}
        with pytest.raises(TransportError, match="start a block"):
            fleet(ways).answer([PROMPT], SCHEMA, 2)
        assert ways["a"].calls == []
        with pytest.raises(TransportError, match="start a block"):
            fleet(ways).probe("a")
        assert fleet(ways, hours=0.5).answer([PROMPT], SCHEMA, 5).member == "a"


def test_a_hedge_goes_only_to_blocks_that_run() -> None:
    ways = {"a": Way(slow(1.5)), "b": Way(right, template="type: SlurmProvider")}
    found = fleet(ways, hours=1, hedge=0.2).answer([PROMPT], SCHEMA, 10)
    assert found.member == "a"
    assert ways["b"].calls == []


def test_a_failed_endpoint_rests_and_is_tried_again() -> None:
    router = Router()
    router.started("a")
    router.ended("a", 1, now=100, good=False)
    assert router.order(["a", "b"], 101) == ["b"]
    assert router.order(["a", "b"], 161) == ["a", "b"]
    router.ended("a", 1, now=170, good=True)
    assert router.order(["a"], 171) == ["a"]


def test_calls_under_way_and_slow_ones_count_against_an_endpoint() -> None:
    router = Router()
    for name, seconds in (("slow", 4.0), ("fast", 1.0)):
        router.started(name)
        router.ended(name, seconds, 1, good=True)
    assert router.order(["slow", "fast"], 2) == ["fast", "slow"]
    for _ in range(4):
        router.started("fast")
    assert router.order(["slow", "fast"], 2) == ["slow", "fast"]


def test_when_nobody_answers_each_reason_is_named_in_time() -> None:
    began = time.monotonic()
    with pytest.raises(TransportError, match=r"a: .*died.*b: offline"):
        fleet({"a": Way(failing), "b": Way(right, online=False)}).answer([PROMPT], SCHEMA, 5)
    assert time.monotonic() - began < 4
    with pytest.raises(TransportError, match="no endpoint is configured"):
        fleet({}).answer([PROMPT], SCHEMA, 1)


def test_one_dies_under_load_and_nothing_is_lost() -> None:
    dead = threading.Event()

    def mortal(prompts: list[Any]) -> list[Any]:
        time.sleep(0.01)
        return failing(prompts) if dead.is_set() else right(prompts)

    chosen = fleet({"a": Way(mortal), "b": Way(slow(0.02))})
    members: list[str] = []

    def load() -> None:
        for _ in range(20):
            members.append(chosen.answer([PROMPT] * 3, SCHEMA, 10).member)  # noqa: PERF401

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    dead.set()
    for thread in threads:
        thread.join(60)
    assert len(members) == 160
    assert set(members[-40:]) == {"b"}
