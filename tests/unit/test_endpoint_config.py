"""Plans as values of endpoints: accepted by the shipped schemas, filled into the shipped templates, launched alike."""

from __future__ import annotations

import json
import os
import shlex
import stat
import sys
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml

from maple_parsl.blocks import launch_command
from maple_parsl.data import data_folder
from maple_parsl.endpoint_config import validated
from maple_parsl.errors import ConfigurationError, RequestError
from maple_parsl.plan import Plan, RunPlace
from maple_parsl.runs.away import bundle
from maple_parsl.runs.away.scheduler import spec_of
from maple_parsl.transport.base import Here
from tests import cases

SCHEDULED = [case for case in cases.SITES if case != "local"]
RUN = "20261201-103000-7f3a9c12d4e5"


def files_of(plan: Plan) -> Path:
    return data_folder("endpoints") / f"multi-user-{plan.scheduler}"


def rendered(plan: Plan, config: dict[str, Any]) -> dict[str, Any]:
    text = (files_of(plan) / "user_config_template.yaml.j2").read_text()
    made = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(text).render(**config)
    return dict(yaml.safe_load(made)["engine"]["provider"])


@pytest.mark.parametrize("case", SCHEDULED)
def test_every_site_s_plan_fits_the_shipped_schema_and_template(case: str) -> None:
    plan = cases.plan(case, "fsdp")
    config = plan.endpoint_config()
    schema = (files_of(plan) / "user_config_schema.json").read_text()
    assert validated(config, schema, "the endpoint") == config
    filled = rendered(plan, config)
    for name, value in config.items():
        shown = {"queue": "partition" if plan.scheduler == "slurm" else "queue"}.get(name, name)
        assert filled[shown] == value
    assert json.dumps(config) == json.dumps(cases.plan(case, "fsdp").endpoint_config())
    assert sys.prefix not in config["worker_init"]  # nothing of this machine


@pytest.mark.parametrize("case", ["perlmutter", "polaris"])
def test_nothing_of_the_plan_s_directives_is_lost(case: str) -> None:
    plan = cases.plan(case, "fsdp")
    config = plan.endpoint_config()
    told = [config["scheduler_options"], config.get("account"), config.get("queue"), config["walltime"]]
    said = " ".join(str(one) for one in (*told, config.get("select_options"), config["nodes_per_block"]))
    for directive in plan.directives:
        value = directive.option.replace("=", " ").split()[-1]
        assert value.split(":")[0] in said or directive.option.startswith("-l select"), directive.option


def test_values_a_schema_refuses_are_named_before_anything_is_sent() -> None:
    config = cases.plan("perlmutter").endpoint_config()
    narrow = {"type": "object", "properties": {"account": {"const": "other"}}, "additionalProperties": False}
    with pytest.raises(ConfigurationError, match="account") as caught:
        validated(config, narrow, "endpoint x")
    assert "worker_init" in str(caught.value)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        validated(config, "{", "endpoint x")
    assert validated(config, None, "endpoint x") == config


def test_a_site_without_a_scheduler_has_no_blocks() -> None:
    with pytest.raises(RequestError, match="no scheduler"):
        cases.plan("local").endpoint_config()


def body(script: str) -> list[str]:
    """From the claim of the run on: everything but directives, set-up and variables."""
    return [row for row in script.split("\n") if row.startswith(("maple_launch", "maple_main", "  maple_launch"))]


@pytest.mark.parametrize("case", ["perlmutter", "polaris", "frontier", "aurora"])
def test_the_launch_is_byte_equal_here_through_a_login_node_and_in_a_block(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "runs"
    plan = cases.plan(case, "fsdp").at(RunPlace(run_id=RUN, run_dir=str(root / RUN), work_dir=str(root / RUN)))
    here = plan.script
    assert body(here)
    # the login-node way: what the scheduler's command is given there
    programs, sent = tmp_path / "bin", tmp_path / "sent"
    programs.mkdir()
    command = {"slurm": "sbatch", "pbs": "qsub"}[plan.scheduler]
    said = {"slurm": "Submitted batch job 7", "pbs": "7.server"}[plan.scheduler]
    (programs / command).write_text(f'#!/bin/sh\nfor last; do :; done\ncp "$last" {sent}\necho "{said}"\n')
    (programs / command).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    files = tmp_path / "files"
    files.mkdir()
    (files / "script.sh").write_text(here)
    collected = bundle.collect(files)
    site = Here(sys.executable)
    where = site.call("where", root=str(root), hashes=[one.sha for one in collected])
    told = site.call(
        "submit",
        root=where["root"],
        run=RUN,
        number=1,
        files=[one.row for one in collected],
        contents=bundle.contents(collected, where["missing"]),
        script="script.sh",
        spec=spec_of(plan),
    )
    assert told["state"] == "submitted", told
    assert sent.read_bytes() == here.encode()
    # the multi-user way: what a worker in the block runs
    line = launch_command(plan, 600)
    assert body(shlex.split(line[line.index("exec timeout") :])[-1]) == body(here)
