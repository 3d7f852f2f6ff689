"""Maple's own scripts read back: directives, launch tree, placement equal the plan's."""

from __future__ import annotations

import pytest

from maple_parsl.script.rankmap import rank_map
from maple_parsl.script.reader import read
from tests import cases


@pytest.mark.parametrize("case,paradigm", cases.CASES)
def test_a_generated_script_reads_back_as_planned(case: str, paradigm: str) -> None:
    plan = cases.plan(case, paradigm)
    script = read(plan.script)
    assert script.faults == ()
    assert script.format.odd == ()
    assert script.format.shebang is not None
    assert script.format.shebang.text == plan.shebang

    written = [(d.name, d.value) for d in script.directives if d.state == "effective"]
    for directive in plan.directives:
        name, _, value = directive.option.partition("=" if plan.scheduler == "slurm" else " ")
        if plan.scheduler == "pbs" and name == "-l":
            resource, _, value = value.partition("=")
            name = f"-l {resource}"
        assert (name, value or None) in written, directive.option

    assert len(script.launches) == (2 if plan.preflight else 1)
    launch = script.launches[-1]
    words = [w for w in plan.launch.launcher if isinstance(w, str)]
    if plan.launch.mode != "first" and plan.launch.dialect != "local":
        assert launch.launcher == words[0]
        given = [o.flag for o in launch.options]
        assert given == [w.partition("=")[0] for w in words[1:] if w.startswith("-")]

    ranks = rank_map(script, cases.site(cases.SITES[case]["site"])).main
    assert ranks is not None
    assert ranks.nodes == plan.shape.nodes
    assert ranks.processes == plan.shape.world_size
    assert ranks.world_size == plan.shape.world_size
    assert ranks.per_node == plan.shape.devices
    if plan.launch.mode == "device":
        assert ranks.rank is not None
        assert ranks.rank.has("per_task")
        assert ranks.endpoint.same_everywhere is not False
    text = str([str(w) for w in launch.leaf.program])
    assert "train.py" in text


def test_the_endpoint_of_a_generated_script_is_the_first_host() -> None:
    script = read(cases.plan("perlmutter").script)
    ranks = rank_map(script).main
    assert ranks is not None
    assert ranks.endpoint.host is not None
    assert ranks.endpoint.host.is_a("first_host")
    assert ranks.endpoint.reachable is True
    assert ranks.endpoint.port is not None
    assert (ranks.endpoint.port.low or 0) >= 20000
    assert (ranks.endpoint.port.high or 99999) < 33000
    assert ranks.node_rank is not None
    assert ranks.node_rank.is_a("per_task")
