"""From words to a verified plan, or to questions; on the command line too."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

import maple_parsl as maple
from maple_parsl import cli
from maple_parsl.cli.words import flags
from maple_parsl.settings import AGENTS, agent

WORDS = "train.py --lr 3e-4 with fsdp on 2 Polaris nodes, bf16, 1 hour in debug, project datascience"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAPLE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def test_words_become_a_plan_with_every_step_in_the_trace() -> None:
    answer = maple.ask(WORDS)
    assert answer.plan is not None
    assert (answer.plan.shape.world_size, answer.plan.queue, answer.plan.account) == (8, "debug", "datascience")
    assert answer.plan.request.args == ("--lr", "3e-4")
    assert [step.agent for step in answer.trace.steps] == ["extraction", "retrieval", "verification"]
    assert not [finding for finding in answer.plan.findings if finding.severity == "error"]
    told = json.loads(json.dumps(answer.to_dict()))
    spans = told["trace"][0]["spans"]
    assert WORDS[spans["account"]["start"] : spans["account"]["end"]] == "datascience"
    assert all(step["seconds"] > 0 and step["model"] == "none" for step in told["trace"])


def test_the_same_plan_as_from_options() -> None:
    structured = maple.plan(
        script="train.py",
        paradigm="fsdp",
        site="polaris",
        nodes=2,
        walltime="1h",
        queue="debug",
        account="datascience",
        precision="bf16",
        args=["--lr", "3e-4"],
    )
    answer = maple.ask(WORDS)
    assert answer.plan is not None
    assert answer.plan.script == structured.script


def test_what_is_missing_is_asked_for_in_numbered_questions() -> None:
    answer = maple.ask("finetune mistral 7b lora")
    assert answer.plan is None
    assert [question.field for question in answer.questions] == ["site", "nodes", "account", "walltime_min", "script"]
    assert str(answer).startswith("1. At which site? One of: ")


@pytest.mark.parametrize("words", ["gpt ddp local", "bert fsdp on perlmutter, 2 nodes, 20 min, debug, m1234"])
def test_a_model_of_ours_needs_no_script(words: str) -> None:
    answer = maple.ask(words)
    assert answer.plan is not None
    assert answer.plan.miniapp


def test_a_model_of_another_family_is_no_error_with_a_script() -> None:
    answer = maple.ask("llama-3 8B with deepspeed zero-3, ds.py, 2 frontier nodes, batch, 1h, account stf218")
    assert answer.plan is not None
    assert (answer.plan.paradigm, answer.plan.template) == ("zero", "deepspeed")
    assert answer.plan.request.parallelism.zero_stage == 3


def test_stated_fields_win_over_words() -> None:
    answer = maple.ask("fsdp train.py on polaris, 2 nodes, debug, 10m", stated={"account": "abc", "nodes": 1})
    assert answer.plan is not None
    assert (answer.plan.account, answer.plan.shape.nodes) == ("abc", 1)


def test_a_failure_is_no_launch() -> None:
    answer = maple.ask("my job on polaris died with RuntimeError: address already in use")
    assert answer.plan is None
    assert any("maple diagnose" in question.why for question in answer.questions)


def test_words_to_a_verified_plan_take_little_time() -> None:
    maple.ask(WORDS)
    times = []
    for _ in range(7):
        started = time.process_time()
        maple.ask(WORDS)
        times.append(time.process_time() - started)
    assert min(times) < 0.2  # 20 ms on an idle machine; the benchmarks measure it, this only guards against a slip


def test_every_agent_has_its_files() -> None:
    for name in AGENTS:
        assert agent(name).name == name
    assert agent("extraction").prompt.count("{{") == 2
    assert len(agent("extraction").shown) >= agent("extraction").examples


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = cli.main(list(words))
    out = capsys.readouterr()
    return code, out.out, out.err


def test_plan_takes_words_and_prints_the_options_that_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "plan", WORDS, "--json")
    assert code == 0
    assert json.loads(out)["request"]["account"] == "datascience"
    command = next(line for line in err.splitlines() if line.startswith("the same in options: ")).split(": ", 1)[1]
    import shlex

    again, out2, _ = (
        run(capsys, *shlex.split(command)[1:], "--json")
        if "--json" in command
        else run(capsys, *_with_json(shlex.split(command)[1:]))
    )
    assert again == 0
    assert json.loads(out2)["script"] == json.loads(out)["script"]


def _with_json(words: list[str]) -> list[str]:
    cut = words.index("--")
    return [*words[:cut], "--json", *words[cut:]]


def test_plan_asks_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "plan", "fsdp train.py on polaris")
    assert (code, out) == (2, "")
    assert "1. On how many nodes?" in err
    code, out, _ = run(capsys, "plan", "fsdp train.py on polaris", "--json")
    assert code == 2
    assert [each["field"] for each in json.loads(out)["questions"]] == ["nodes", "account", "walltime_min"]
    code, out, _ = run(
        capsys, "plan", "fsdp train.py on polaris", "-N", "2", "-A", "abc", "-t", "10m", "-q", "debug", "--json"
    )
    assert code == 0


def test_run_submits_nothing_without_a_confirmation(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = run(capsys, "run", "gpt ddp local")
    assert code == 8
    assert "Nothing was submitted" in err
    assert not (tmp_path / "home" / "runs").exists() or not any((tmp_path / "home" / "runs").iterdir())
    code, _, err = run(capsys, "run", "run $(touch owned) on local", "--yes")
    assert code == 2
    assert not (tmp_path / "owned").exists()


def test_extract_prints_the_reading(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "extract", "--json", WORDS)
    told = json.loads(out)
    assert (code, told["nodes"], told["walltime_min"], told["script"]) == (0, 2, 60, "train.py")
    assert told["spans"]["nodes"]["text"] == "2 Polaris nodes"
    assert run(capsys, "extract", "polaris 0 nodes")[0] == 2


def test_chat_asks_only_for_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import io
    import sys

    monkeypatch.setattr(sys, "stdin", io.StringIO("2\nabc\n30m\nn\n"))
    code, out, _ = run(capsys, "chat", "fsdp train.py on polaris, debug")
    assert code == 0
    asked = [line for line in out.splitlines() if "?" in line]
    assert len(asked) == 4
    assert "nothing was submitted" in out


def test_flags_name_everything_that_was_stated() -> None:
    request: Any = maple.Request.of(
        script="a b.py",
        site="polaris",
        nodes=1,
        args=["--x", "it's"],
        conda="e",
        zero_stage=2,
        env={"A": "b c"},
        exclusive=False,
    )
    command = flags(request)
    assert command == (
        "maple run --site polaris --script 'a b.py' --nodes 1 --zero-stage 2 --conda e '--env=A=b c' --no-exclusive"
        """ -- --x 'it'"'"'s'"""
    )
