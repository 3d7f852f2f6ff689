"""compose: what it fills in, what it refuses, and what it says of each."""

from __future__ import annotations

from typing import Any

import pytest

from maple_parsl.compose import compose
from maple_parsl.errors import ComposeError, RequestError, UnknownNameError
from maple_parsl.plan import Plan
from maple_parsl.request import Request
from maple_parsl.walltime import Walltime
from tests import cases


def options(plan: Plan) -> list[str]:
    return [directive.option for directive in plan.directives]


def refused(case: str, paradigm: str = "ddp", **more: Any) -> str:
    with pytest.raises(ComposeError) as error:
        cases.plan(case, paradigm, **more)
    return str(error.value)


def test_devices_tasks_and_cores_come_from_the_site() -> None:
    plan = cases.plan("polaris")
    assert (plan.shape.devices, plan.shape.world_size, plan.shape.cpus_per_task) == (4, 8, 8)
    origin = plan.provenance["devices"]
    assert origin.layer == "site"
    assert origin.source is not None
    assert "argonne-lcf/user-guides" in origin.source
    assert str(origin.checked_on) == "2026-12-01"


def test_every_directive_says_where_it_is_from() -> None:
    for case in cases.SITES:
        for directive in cases.plan(case).directives:
            assert directive.origin.why
            assert directive.origin.layer != "site" or directive.origin.source


@pytest.mark.parametrize("name", ["account", "walltime", "nodes"])
def test_nothing_is_invented(name: str) -> None:
    message = refused("polaris", **{name: None})
    assert {"account": "account", "walltime": "walltime", "nodes": "nodes"}[name] in message


def test_all_that_is_missing_is_said_at_once() -> None:
    with pytest.raises(ComposeError) as error:
        cases.plan("delta", account=None, walltime=None, nodes=None)
    assert len(error.value.problems) == 3


def test_an_optional_account_is_left_out_not_filled_in() -> None:
    assert not [option for option in options(cases.plan("vista")) if "account" in option]


def test_one_machine_needs_no_nodes() -> None:
    assert cases.plan("local").shape.nodes == 1
    assert "one machine" in refused("local", nodes=2)


def test_the_only_fitting_queue_is_taken_and_several_are_asked_about() -> None:
    assert cases.plan("sophia", queue=None, node_kind="by-node").queue == "by-node"
    message = refused("polaris", queue=None)
    assert "debug, debug-scaling, preemptable, capacity" in message
    plan = cases.plan("aurora", queue=None, nodes=300, walltime="6h")
    assert plan.queue == "prod"
    assert plan.provenance["queue"].layer == "computed"


@pytest.mark.parametrize(
    "case,more,words",
    [
        ("polaris", {"queue": "prod"}, ["starts at 10 nodes", "debug"]),
        ("polaris", {"queue": "debug", "nodes": 3}, ["at most 2 nodes", "debug-scaling"]),
        ("polaris", {"queue": "prod", "nodes": 20, "walltime": "4h"}, ["at most 03:00:00 for 20 nodes", "small"]),
        ("polaris", {"queue": "debug", "walltime": "2h"}, ["at most 01:00:00", "preemptable"]),
        ("frontier", {"nodes": 50, "walltime": "12h"}, ["at most 02:00:00 for 50 nodes", "extended"]),
        ("perlmutter", {"queue": "interactive"}, ["interactive only"]),
        ("polaris", {"queue": "debgu"}, ["did you mean debug"]),
        ("polaris", {"walltime": "2m"}, ["below the 00:05:00"]),
        ("perlmutter", {"node_kind": "gpu90"}, ["unknown node kind"]),
        ("polaris", {"gpus_per_node": 8, "nodes": 2}, ["has 4", "4 nodes x 4"]),
        ("perlmutter", {"queue": "shared", "nodes": 1}, ["state how many GPUs per node"]),
        ("anvil", {"nodes": 4}, ["16 asked for"]),
        ("aces", {"gpus_per_node": None}, ["state how many GPUs"]),
        ("polaris", {"cpus": 20}, ["more than the 64"]),
    ],
)
def test_limits_are_kept_and_a_way_out_offered(case: str, more: dict[str, Any], words: list[str]) -> None:
    message = refused(case, **more)
    for word in words:
        assert word in message


def test_unknown_names_offer_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean gpt"):
        cases.plan("polaris", model="gptt")
    with pytest.raises(UnknownNameError, match="did you mean fsdp"):
        cases.plan("polaris", "fsdpp")
    with pytest.raises(UnknownNameError, match="did you mean torchrun"):
        cases.plan("polaris", template="torchrn")


def test_a_script_needs_no_model_or_paradigm() -> None:
    plan = cases.plan("perlmutter", model=None, paradigm=None, script="train.py", args=("--lr", "3e-4"))
    assert plan.paradigm == "ddp"
    assert "train.py --lr 3e-4" in plan.script
    assert not plan.miniapp


def test_a_retired_site_is_refused_with_what_followed() -> None:
    import tomllib

    from maple_parsl.compose import compose
    from maple_parsl.site import Site

    for file in (cases.ROOT / "providers" / "retired").glob("*.toml"):
        site = Site.model_validate(tomllib.loads(file.read_text()))
        with pytest.raises(ComposeError, match="retired"):
            compose(Request.of(model="gpt", paradigm="ddp", nodes=1), site, cases.templates())


def test_user_directives_pass_through_and_replace_ours_with_a_finding() -> None:
    plan = cases.plan("delta", directives=("--mem=10G", "--reservation=mine", "-C scratch"))
    made = options(plan)
    assert "--mem=10G" in made
    assert "--mem=0" not in made
    assert "--reservation=mine" in made
    assert [f.rule for f in plan.findings] == ["user-directive"]
    own = next(d for d in plan.directives if d.option == "--reservation=mine")
    assert own.origin.layer == "stated"


def test_a_user_directive_against_a_site_fact_is_an_error_finding_not_dropped() -> None:
    plan = cases.plan("vista", directives=("--mem=10G",))
    assert "--mem=10G" in options(plan)
    assert [(f.severity, f.fault_class) for f in plan.findings] == [("error", "SCHED_DIALECT")]
    assert "rejects --mem" in plan.findings[0].message


def test_a_pbs_resource_of_the_user_replaces_the_sites() -> None:
    plan = cases.plan("polaris", directives=("-l filesystems=eagle",))
    made = [option for option in options(plan) if "filesystems" in option]
    assert made == ["-l filesystems=eagle"]
    assert plan.findings[0].severity == "warning"


@pytest.mark.parametrize("option", ["--job-name=x", "-J x", "--output=log", "-o log", "-e err"])
def test_name_and_output_belong_to_the_run(option: str) -> None:
    assert "belong to the run" in refused("delta", directives=(option,))


def test_launcher_options_replace_ours() -> None:
    plan = cases.plan("perlmutter", launcher_args=("--cpu-bind=none", "--kill-on-bad-exit=0"), preflight="off")
    assert plan.script.count("--kill-on-bad-exit") == 1
    assert "--kill-on-bad-exit=0" in plan.script
    assert any("replaces" in f.message for f in plan.findings)
    plan = cases.plan("polaris", launcher_args=("--cpu-bind numa",))
    assert "--cpu-bind numa" in plan.script
    assert "list:24-31" not in plan.script


def test_the_users_environment_replaces_the_sites_framework() -> None:
    plan = cases.plan("polaris", environment={"venv": "/eagle/me/my env"})
    assert "source '/eagle/me/my env/bin/activate'" in plan.script
    assert "conda activate base" not in plan.script
    plan = cases.plan("polaris", environment={"conda": "mine"})
    lines = [step.line for step in plan.setup]
    assert lines.index('eval "$(conda shell.bash hook)"') == lines.index("conda activate mine") - 1
    assert "module load conda" in lines


@pytest.mark.parametrize(
    "case,engine,words",
    [
        ("delta", None, ["apptainer exec --nv", '--bind "$MAPLE_RUN_DIR"', "image.sif python3"]),
        ("perlmutter", None, ["shifter --image=image.sif", "--module=gpu,nccl-plugin"]),
        ("perlmutter", "podman-hpc", ["podman-hpc run --rm --gpu", '--volume "$MAPLE_RUN_BIND"', "--env-host"]),
    ],
)
def test_containers(case: str, engine: str | None, words: list[str]) -> None:
    plan = cases.plan(case, environment={"container": "image.sif", "engine": engine, "binds": ("/data:/data:ro",)})
    flat = plan.script.replace(" \\\n  ", " ")
    for word in words:
        assert word in flat
    assert "/data:/data:ro" in flat


def test_requeue_and_memory_and_exclusive() -> None:
    assert "--requeue" in options(cases.plan("delta", requeue=True))
    assert "--no-requeue" in options(cases.plan("delta"))
    assert "-r y" in options(cases.plan("polaris", requeue=True))
    assert "--mem=64G" in options(cases.plan("delta", memory="64GiB"))
    assert "--exclusive" in options(cases.plan("anvil", exclusive=True))
    part = options(cases.plan("delta", gpus_per_node=2))
    assert "--gpus-per-node=2" in part
    assert "--exclusive" not in part
    assert "--mem=115G" in part


def test_tiles_and_whole_gpus() -> None:
    assert cases.plan("aurora").shape.devices == 12
    whole = cases.plan("aurora", whole_gpus=True)
    assert whole.shape.devices == 6
    assert {e.name: e.value for e in whole.exports}["ZE_FLAT_DEVICE_HIERARCHY"] == "COMPOSITE"
    assert cases.plan("aurora", gpus_per_node=6, whole_gpus=True).shape.whole_node


def test_3d_degrees_multiply_to_the_world() -> None:
    plan = cases.plan("polaris", "3d")
    assert "--dp 2 --pp 2 --tp 2" in plan.script.replace(" \\\n  ", " ")
    plan = cases.plan("polaris", "3d", parallelism={"tp": 4})
    assert "--dp 1 --pp 2 --tp 4" in plan.script.replace(" \\\n  ", " ")
    assert "do not divide" in refused("polaris", "3d", parallelism={"tp": 3})
    assert "for gpt only" in refused("polaris", "3d", model="vit")
    megatron = cases.plan("polaris", "3d", template="megatron", script="pretrain.py", model=None)
    assert "--tensor-model-parallel-size=2 --pipeline-model-parallel-size=2" in megatron.script.replace(" \\\n  ", " ")


@pytest.mark.parametrize(
    "fields,word",
    [
        ({"account": "a b;touch X"}, "account"),
        ({"account": "x\n#SBATCH --exclusive"}, "account"),
        ({"queue": "$(id)"}, "queue"),
        ({"queue": "-debug"}, "queue"),
        ({"nodes": 0}, "nodes"),
        ({"nodes": 3.5}, "nodes"),
        ({"nodes": "2"}, "nodes"),
        ({"walltime": "soon"}, "walltime"),
        ({"script": "a\nb.py"}, "script"),
        ({"script": "--evil"}, "script"),
        ({"args": ("a\x00b",)}, "args"),
        ({"env": {"A-B": "1"}}, "env"),
        ({"env": {"HF_TOKEN": "hf_x"}}, "secret"),
        ({"memory": "lots"}, "memory"),
        ({"directives": ("exclusive",)}, "directives"),
        ({"colour": "red"}, "no such field"),
        ({"setup": ("module load a\nrm -rf x",)}, "setup"),
    ],
)
def test_bad_values_are_refused_by_name(fields: dict[str, Any], word: str) -> None:
    with pytest.raises(RequestError, match=word):
        Request.of(**fields)


@pytest.mark.parametrize("line", ["echo 'unfinished", "module load x \\"])
def test_setup_lines_must_be_whole(line: str) -> None:
    assert "setup line" in refused("delta", setup=(line,))


def test_variables_of_the_launch_are_not_the_users() -> None:
    assert "MASTER_PORT" in refused("delta", env={"MASTER_PORT": "29500"})
    plan = cases.plan("delta", env={"NCCL_SOCKET_IFNAME": "eth0"})
    assert "export NCCL_SOCKET_IFNAME=eth0" in plan.script
    assert plan.findings[0].rule == "user-variable"


def test_size_of_a_plan_does_not_grow_with_nodes() -> None:
    small = cases.plan("aurora", queue="prod", nodes=256)
    large = cases.plan("aurora", queue="prod", nodes=10624)
    assert abs(len(small.to_json()) - len(large.to_json())) < 200
    assert large.ranks.world_size == 127488
    assert large.ranks[127487].node == 10623
    assert abs(len(small.script) - len(large.script)) < 200


def test_without_any_pytorch_the_plan_says_so() -> None:
    plan = cases.plan("stampede3-h100")
    found = next(f for f in plan.findings if f.rule == "no-framework")
    assert found.severity == "warning"
    assert "--venv" in (found.fix or "")
    own = cases.plan("stampede3-h100", venv="/scratch/me/venv")
    assert [(f.rule, f.severity) for f in own.findings] == [("own-environment", "note")]


def test_the_conda_hook_stands_once() -> None:
    plan = cases.plan("stampede3-pvc")
    lines = [step.line for step in plan.setup]
    assert len(lines) == len(set(lines))
    assert "conda activate pytorch" in lines


def test_python_takes_the_names_of_the_command_line() -> None:
    request = Request.of(script="t.py", conda="mine", modules=["cuda"], tp=2)
    assert (request.environment.conda, request.environment.modules) == ("mine", ("cuda",))
    assert request.parallelism.tp == 2
    with pytest.raises(RequestError, match="not both"):
        Request.of(script="t.py", venv="/v", environment={"conda": "mine"})
    with pytest.raises(RequestError, match="gpus: no such field; did you mean gpus_per_node"):
        Request.of(script="t.py", gpus=4)


@pytest.mark.parametrize(
    "venv,line",
    [
        ("~/v 1", "source \"$HOME\"'/v 1/bin/activate'"),
        ("$SCRATCH/v/", 'source "$SCRATCH"/v/bin/activate'),
        ("/a/$(id)", "source '/a/$(id)/bin/activate'"),
        ("$(id)/v", "source '$(id)/v/bin/activate'"),
    ],
)
def test_home_and_variables_of_a_venv_are_the_jobs(venv: str, line: str) -> None:
    assert line in [step.line for step in cases.plan("delta", venv=venv).setup]


def test_a_plan_on_placeholders_says_so() -> None:
    site = cases.site("delta")
    site = site.model_copy(update={"scheduler": site.scheduler.model_copy(update={"source": "EDIT: the document"})})
    plan = compose(cases.request("delta"), site, cases.templates())
    assert any(f.rule == "site-unfilled" and "(scheduler)" in f.message for f in plan.findings)


def test_an_own_environment_is_completed_by_what_the_site_says() -> None:
    lines = [step.line for step in cases.plan("perlmutter", conda="mine").setup]
    assert lines.index("module load nccl cudatoolkit") > lines.index("conda activate mine")
    assert "module load nccl cudatoolkit" not in [step.line for step in cases.plan("perlmutter").setup]


def test_a_walltime_of_one_s_own_site_file_is_used_where_none_is_stated() -> None:
    record = cases.plan("polaris")
    site = cases.site("polaris")
    mine = site.model_copy(update={"defaults": site.defaults.model_copy(update={"walltime": Walltime.parse("30m")})})
    made = compose(record.request.model_copy(update={"walltime": None}), mine, cases.templates())
    assert str(made.walltime) == "00:30:00"
    assert made.provenance["walltime"].layer == "configured"
    (line,) = [each for each in made.directives if "walltime" in each.option]
    assert line.origin.layer == "configured"
    assert compose(record.request, mine, cases.templates()).provenance["walltime"].layer == "stated"
