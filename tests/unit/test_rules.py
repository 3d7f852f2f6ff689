"""Every rule on its own examples, and silence on every script Maple writes."""

from __future__ import annotations

import pytest

from maple_parsl.rules import CLASSES, MOST, Rule, check, rules
from maple_parsl.site import Site
from tests import cases


def site_of(rule: Rule) -> Site | None:
    return cases.site(rule.site) if rule.site else None


@pytest.mark.parametrize("rule", rules().values(), ids=lambda rule: rule.id)
def test_a_rule_speaks_on_its_bad_example_and_not_on_the_good_one(rule: Rule) -> None:
    found = [finding for finding in check(rule.bad, site_of(rule)) if finding.rule == rule.id]
    assert found, "silent on its bad example"
    for finding in found:
        assert finding.fault_class == rule.fault_class
        assert finding.message
        assert finding.fix
        assert finding.evidence
    assert not [finding for finding in check(rule.good, site_of(rule)) if finding.rule == rule.id]


@pytest.mark.parametrize("rule", rules().values(), ids=lambda rule: rule.id)
def test_a_rule_is_documented(rule: Rule) -> None:
    assert rule.why.endswith(".")
    assert rule.source
    assert rule.fault_class in CLASSES
    assert rule.needs_site == (rule.needs_site and rule.site is not None)


@pytest.mark.parametrize("case,paradigm", cases.CASES)
def test_scripts_of_maple_have_no_finding(case: str, paradigm: str) -> None:
    plan = cases.plan(case, paradigm)
    found = check(plan.script, cases.site(cases.SITES[case]["site"]))
    assert not found, [(f.rule, f.line, f.message) for f in found]


def test_a_finding_can_be_ignored_with_a_reason() -> None:
    rule = rules()["framework-launcher-per-task"]
    lines = rule.bad.split("\n")
    at = next(i for i, row in enumerate(lines) if "torchrun" in row)
    lines.insert(at, "# maple: ignore[framework-launcher-per-task] on purpose")
    assert rule.id not in {finding.rule for finding in check("\n".join(lines))}
    assert rule.id not in {finding.rule for finding in check(rule.bad, disabled=[rule.id])}


def test_a_rule_does_not_flood_the_report() -> None:
    found = check("#!/bin/bash\n" + "#SBATCH -N 2\n" * 1000)
    repeated = [f for f in found if f.rule == "directive-repeated"]
    assert len(repeated) == MOST
    assert "not listed" in repeated[-1].message
    assert "not listed" not in repeated[0].message
