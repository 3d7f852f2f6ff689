"""Right scripts pass: hand-written ones of every launch style, and the generated ones."""

from __future__ import annotations

from typing import Any

import pytest

from maple_parsl.judge.case import Case, Program
from maple_parsl.judge.judging import judge
from maple_parsl.judge.sandbox import Sandbox
from tests import cases
from tests.judge.good import GOOD

SITES = "polaris aurora perlmutter vista lonestar6 stampede3-h100 stampede3-pvc delta deltaai anvil".split()


@pytest.mark.parametrize("name", GOOD)
def test_a_right_script_by_hand_passes(sandbox: Sandbox, name: str) -> None:
    script, case = GOOD[name]
    verdict = judge(script, case, sandbox, record=True)
    assert not verdict.faults, verdict.record
    assert verdict.processes == case.world_size


@pytest.mark.parametrize("name", SITES)
@pytest.mark.parametrize("template", ["torchrun", "plain", "accelerate"])
def test_a_generated_script_passes(sandbox: Sandbox, name: str, template: str) -> None:
    more: dict[str, Any] = {"script": "train.py", "args": ("a b", "$x"), "template": template}
    plan = cases.plan(name, "ddp", model=None, **more)
    stated = cases.SITES[name]
    case = Case(
        site=stated["site"],
        nodes=2,
        devices_per_node=plan.shape.devices,
        minutes=30,
        account=stated.get("account"),
        queue=stated["queue"],
        program=Program(script="train.py", args=("a b", "$x")),
    )
    verdict = judge(plan.script, case, sandbox, record=True)
    assert not verdict.faults, verdict.record["output"]
    assert verdict.processes == plan.shape.world_size
