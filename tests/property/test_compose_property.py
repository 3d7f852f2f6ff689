"""Laws of compose and of scripts, over all sites and odd values."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maple_parsl.compose import compose
from maple_parsl.errors import MapleError
from maple_parsl.here.shell_line import fault
from maple_parsl.plan import Plan, RunPlace
from maple_parsl.request import PARADIGMS, Request
from maple_parsl.walltime import Walltime
from tests import cases

# One line of text as a person may write it: quotes, spaces, dollars, backslashes, other scripts.
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=20)
SHAPES = st.fixed_dictionaries(
    {
        "nodes": st.integers(1, 20000),
        "gpus_per_node": st.none() | st.integers(1, 16),
        "walltime": st.integers(1, 200_000).map(lambda s: str(Walltime(s))),
        "cpus": st.none() | st.integers(1, 300),
        "requeue": st.booleans(),
        "whole_gpus": st.booleans(),
    }
)


@settings(max_examples=300, deadline=None)
@given(case=st.sampled_from(sorted(cases.SITES)), paradigm=st.sampled_from(PARADIGMS), shape=SHAPES)
def test_a_plan_keeps_its_laws_or_says_why_not(case: str, paradigm: str, shape: dict[str, Any]) -> None:
    if case == "local":
        shape = {**shape, "nodes": None}
    try:
        plan = cases.plan(case, paradigm, **shape)
    except MapleError:
        return
    form = plan.shape
    assert form.world_size == form.nodes * form.devices
    assert form.tasks_per_node in (1, form.devices)
    assert len(plan.placement.device) == form.devices
    assert len(set(plan.placement.device)) == form.devices
    ranks = plan.ranks
    assert [ranks[r].rank for r in (0, ranks.world_size - 1)] == [0, form.world_size - 1]
    assert ranks[form.world_size - 1].node == form.nodes - 1
    queue = cases.site(cases.SITES[case]["site"]).queue(plan.queue or "")
    if queue and queue.max_nodes:
        assert form.nodes <= queue.max_nodes
    assert Plan.from_json(plan.to_json()) == plan
    assert plan.script == Plan.from_json(plan.to_json()).script


@settings(max_examples=60, deadline=None)
@given(case=st.sampled_from(sorted(cases.SITES)), args=st.lists(WORDS, max_size=4), value=WORDS, line=WORDS)
def test_any_text_makes_a_script_bash_parses_or_is_refused(case: str, args: list[str], value: str, line: str) -> None:
    try:
        if fault(f"echo {line}"):
            return
        plan = cases.plan(case, script="a b/train.py", args=args, env={"X": value}, setup=(f"echo {line}",))
    except MapleError:
        return
    done = subprocess.run(["bash", "-n"], input=plan.script.encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("template", ["plain", "torchrun"])
def test_templates_differ_in_who_starts_the_processes(template: str) -> None:
    assert cases.plan("perlmutter", template=template).launch.mode == {"plain": "device", "torchrun": "node"}[template]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(args=st.lists(WORDS, max_size=5), value=WORDS)
def test_arguments_and_variables_arrive_untouched(tmp_path: Path, args: list[str], value: str) -> None:
    program = tmp_path / "it's a program.py"
    program.write_text(
        "import json, os, sys\n"
        "json.dump([sys.argv[1:], os.environ['X']], open(os.environ['OUT'] + os.environ['RANK'], 'w'))\n"
    )
    run = tmp_path / f"run {len(list(tmp_path.iterdir()))}"
    run.mkdir()
    request = Request.of(
        site="local",
        node_kind="cpu",
        template="plain",
        script=str(program),
        args=args,
        env={"X": value, "OUT": str(run / "out.")},
        environment={"python": sys.executable},
    )
    plan = compose(request, cases.site("local"), cases.templates())
    plan = plan.at(RunPlace(run_id="20261201-abcdef", run_dir=str(run), work_dir=str(tmp_path)))
    done = subprocess.run(
        ["bash", "-c", plan.script], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for rank in "01":
        assert json.loads((run / f"out.{rank}").read_text()) == [args, value]
