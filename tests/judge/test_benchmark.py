"""The benchmark: its cases are what they say, and a fixed sample of them is planned and judged."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from pathlib import Path

import pytest

from maple_parsl.benchmark.answers import Structured
from maple_parsl.benchmark.cases import SEED, BenchCase, cases, sample
from maple_parsl.benchmark.report import report, text
from maple_parsl.benchmark.run import plan_all, run
from maple_parsl.errors import RequestError
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
    """24 cases, always the same; MAPLE_BENCH_CASES=567 takes all of them."""
    count = int(os.environ.get("MAPLE_BENCH_CASES", "24"))
    results = run(sample(cases(), count, 5), Structured())
    assert [(result.case.id, result.faults) for result in results if not result.right] == []
    made = report(results, seed=SEED, command="x", answer="fields", wall_seconds=1.0)
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


def test_plans_of_all_cases_take_less_than_half_a_minute() -> None:
    started = time.process_time()  # of this core: what others do at the same time does not count
    made = plan_all(cases(), Structured())
    assert time.process_time() - started < 30
    assert all(script for script, _, _ in made)


def test_the_words_are_not_those_of_the_extractors_tests() -> None:
    """No request of the handed ones or of the tests stands among the benchmark's."""
    here = {case.text for case in cases()}
    for path in Path(__file__).parents[1].rglob("requests*.jsonl"):
        told = path.read_text(encoding="utf-8")
        assert not [words for words in here if words in told]
