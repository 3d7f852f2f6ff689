"""Each rule's fault, put into scripts that Maple writes, is found.

A rule that compares with a fact stays silent at sites which lack it, so a mutator says where its fault can occur. One
script for each rule; MAPLE_FULL=1 takes every site and paradigm.
"""

from __future__ import annotations

import os
import random

import pytest

from maple_parsl.rules import check, rules
from tests import cases
from tests.property.mutators import ABSENT, MUTATORS

PARADIGMS = ("ddp", "fsdp", "3d")


def scripts(seed: str) -> list[tuple[str, str]]:
    every = [(case, paradigm) for case in cases.SITES for paradigm in PARADIGMS]
    random.Random(seed).shuffle(every)
    return every


def test_every_rule_has_a_mutator_or_a_reason() -> None:
    assert set(MUTATORS) | set(ABSENT) == set(rules())
    assert not set(MUTATORS) & set(ABSENT)


@pytest.mark.parametrize("identifier", MUTATORS)
def test_the_fault_is_found_in_a_generated_script(identifier: str) -> None:
    wanted, tried = rules()[identifier].fault_class, 0
    for case, paradigm in scripts(identifier):
        site = cases.site(cases.SITES[case]["site"])
        text = cases.plan(case, paradigm).script
        made = MUTATORS[identifier](text, site)
        if made is None:
            continue
        assert made != text
        found = check(made, site)
        assert wanted in {f.fault_class for f in found}, (case, paradigm, [(f.rule, f.line) for f in found])
        tried += 1
        if not os.environ.get("MAPLE_FULL"):
            break
    assert tried, "applies to no generated script"
