"""The benchmark: its cases are what they say, and a fixed sample of them is planned and judged."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path

import pytest

from maple_parsl.benchmark.answers import Structured, Words, ablations
from maple_parsl.benchmark.cases import SEED, BenchCase, cases, sample
from maple_parsl.benchmark.report import dump, report, text
from maple_parsl.benchmark.run import Made, Result, compared, plan_all, run
from maple_parsl.errors import ConfigurationError, RequestError
from maple_parsl.judge.sites import judged_site


def test_there_are_567_cases_nine_sites_twenty_one_workloads_three_phrasings() -> None:
    every = cases()
    assert len(every) == len({case.id for case in every}) == 567
    assert set(Counter(case.site for case in every).values()) == {63}
    assert len({(case.family, case.paradigm) for case in every}) == 21
    assert set(Counter(case.phrasing for case in every).values()) == {189}
    assert len({case.text for case in every}) > 560


def test_a_seed_makes_the_same_cases_and_another_makes_others() -> None:
    assert cases(7) == cases(7)
    assert cases(7) != cases(8)


@pytest.mark.parametrize("seed", [SEED, 1, 2])
def test_every_case_can_be_met_at_its_site_and_its_words_say_so(seed: int) -> None:
    for case in cases(seed):
        wanted, site = case.expected, judged_site(case.site)
        queue = site.queues[wanted.queue or ""]
        assert queue.min <= wanted.nodes <= (queue.max or 64)
        assert (wanted.minutes or 0) <= (queue.longest(wanted.nodes) or 10**9)
        for word in (wanted.queue, wanted.account, wanted.conda):
            assert word is None or word in case.text, case.id
        if case.fields.get("script"):
            assert case.fields["script"] in case.text
        assert re.search(r"hour|min|\d\d:\d\d|\dh", case.text), case.text


def test_a_sample_is_spread_and_the_same_every_time() -> None:
    some = sample(cases(), 27, 1)
    assert some == sample(cases(), 27, 1)
    assert set(Counter(case.site for case in some).values()) == {3}


@pytest.mark.timeout(1800)
def test_a_sample_is_right() -> None:
    """From words: 24 cases, always the same; MAPLE_BENCH_CASES=567 takes all of them."""
    count = int(os.environ.get("MAPLE_BENCH_CASES", "24"))
    results = run(sample(cases(), count, 5), Words())
    assert [(result.case.id, result.faults) for result in results if not result.right] == []
    made = report(results, seed=SEED, command="x", answer="words", wall_seconds=1.0)
    assert made["accuracy"] == 1.0
    assert text(made).startswith(f"{count} of {count} right (100.0%)")


def test_what_cannot_be_planned_is_a_miss_with_its_reason() -> None:
    class Refuses:
        name = "refuses"

        def __call__(self, case: BenchCase) -> str:
            raise RequestError(f"cannot read {case.id}")

    one = sample(cases(), 1, 1)
    (result,) = run(one, Refuses(), workers=1)
    assert not result.right
    assert result.faults == (f"RequestError: cannot read {one[0].id}",)


def test_a_wrong_script_is_a_miss() -> None:
    class Halves:
        name = "halves"

        def __call__(self, case: BenchCase) -> str:
            return Structured()(case).replace(case.expected.queue or "", "nowhere")

    (result,) = run(sample(cases(), 1, 1), Halves(), workers=1)
    assert any(fault.startswith("queue: ") for fault in result.faults)


def test_plans_from_words_are_those_of_the_fields() -> None:
    every = cases() if os.environ.get("MAPLE_FULL") else sample(cases(), 90, 7)
    made = plan_all(every, Words())
    assert [mine.reason for mine in made if mine.script is None] == []
    planned = plan_all(every, Structured())
    assert [case.id for case, one, two in zip(every, made, planned, strict=True) if one.script != two.script] == []


def test_the_planner_alone_and_with_an_agent_left_out_makes_the_same_of_a_plain_case() -> None:
    (case,) = sample(cases(), 1, 3)
    script = Words()(case)
    assert [each.name for each in ablations()] == [
        "words, without retrieval",
        "words, without verification",
        "words, without correction",
        "fields",
    ]
    assert {each(case) for each in ablations()} == {script}


def test_a_script_that_is_the_same_keeps_its_verdict_and_another_is_judged() -> None:
    one, two = sample(cases(), 2, 1)
    right = Made(Structured()(one), "", 0.1, 0.1)
    before = [
        Result(one, right, ("queue: as it was judged",), 1.0),
        Result(two, Made(None, "no", 0.1, 0.1), ("no",), 0.0),
    ]
    again = compared(before, Structured(), workers=1)
    assert again[0].faults == ("queue: as it was judged",)
    assert again[1].right
    made = report(before, seed=1, command="x", answer="words", wall_seconds=1.0, others={"fields": again})
    assert made["others"]["fields"]["same_script"] == 1
    assert made["others"]["fields"]["right"] == 1
    assert json.loads(dump(made)) == made
    assert [row["id"] for row in made["each"]] == [one.id, two.id]
    assert dump(made).partition('"each"')[2].count("\n") == 5  # a line a case


def test_a_model_is_asked_for_only_where_one_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAPLE_MODEL", raising=False)
    with pytest.raises(ConfigurationError, match="MAPLE_MODEL"):
        Words(model=True)
    monkeypatch.setenv("MAPLE_MODEL", "openai:small@http://127.0.0.1:9/v1")
    assert Words(model=True).name == "words, with small"
    assert Words()(sample(cases(), 1, 1)[0])  # without: nothing is asked of a server that is not there


def test_the_words_are_not_those_of_the_extractors_tests() -> None:
    """No request of the handed ones or of the tests stands among the benchmark's."""
    here = {case.text for case in cases()}
    for path in Path(__file__).parents[1].rglob("requests*.jsonl"):
        told = path.read_text(encoding="utf-8")
        assert not [words for words in here if words in told]
