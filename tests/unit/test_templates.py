"""Every template at sites of every dialect: scripts that parse, and launch lines in the framework's own words."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import maple_parsl
from maple_parsl import template
from maple_parsl.errors import ComposeError, ConfigurationError
from tests import cases

DIALECTS = ["delta", "polaris", "vista", "lonestar6", "sophia", "local"]
EVERY = [(name, case) for name in cases.templates() for case in DIALECTS]


def flat(text: str) -> str:
    return " ".join(text.replace("\\\n", " ").split())


@pytest.mark.parametrize("name,case", EVERY)
def test_every_paradigm_of_every_template_makes_a_script(name: str, case: str) -> None:
    for paradigm in cases.templates()[name].paradigms:
        script = cases.plan(case, paradigm, template=name, script="train.py", model=None).script
        assert subprocess.run(["bash", "-n"], input=script.encode(), check=False).returncode == 0
        assert "{" + "devices}" not in script
        assert "train.py" in script


@pytest.mark.parametrize(
    "name,paradigm,words",
    [
        ("torchrun", "ddp", 'torch.distributed.run --nnodes=2 --nproc-per-node=4 --node-rank="$NODE_RANK"'),
        ("accelerate", "fsdp", '--num_machines=2 --num_processes=8 --machine_rank="$NODE_RANK"'),
        ("accelerate", "fsdp", "--use_fsdp"),
        ("accelerate", "zero", "--use_deepspeed --zero_stage=1"),
        ("deepspeed-hostfile", "zero", '--hostfile="$MAPLE_HOSTFILE" --num_nodes=2 --num_gpus=4'),
        ("deepspeed-per-node", "zero", '--no_ssh --node_rank="$NODE_RANK"'),
        ("megatron", "tp", "train.py --tensor-model-parallel-size=8"),
        ("lightning", "ddp", 'sh "$MAPLE_TASK" device python3 -u train.py'),
    ],
)
def test_launch_words(name: str, paradigm: str, words: str) -> None:
    plan = cases.plan("delta", paradigm, template=name, script="train.py", model=None)
    assert words in flat(plan.script)


def test_a_hostfile_has_every_node_once_with_its_devices(tmp_path: Path) -> None:
    script = cases.plan("polaris", "zero", template="deepspeed-hostfile").script
    line = next(row for row in script.split("\n") if "slots=" in row)
    (tmp_path / "nodes").write_text("a.dom\na.dom\nb.dom\n")
    done = subprocess.run(
        ["bash", "-c", "maple_put() { cat; }; MAPLE_HOSTFILE=x\n" + line],
        env={"PATH": "/usr/bin:/bin", "PBS_NODEFILE": str(tmp_path / "nodes")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "a.dom slots=4\nb.dom slots=4\n"


def test_what_ssh_does_not_carry_is_written_down(tmp_path: Path) -> None:
    script = cases.plan("delta", "zero", template="deepspeed-hostfile", env={"X_Y": "a b=c"}, preflight="off").script
    start = script.index("export DS_ENV_FILE")
    part = script[start : script.index("maple_launch", start)]
    done = subprocess.run(
        ["bash", "-c", "maple_put() { cat; }\nexport X_Y='a b=c' MASTER_PORT=1\n" + part],
        env={"PATH": "/usr/bin:/bin", "MAPLE_RUN_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert {"X_Y=a b=c", "MASTER_PORT=1", "PATH=/usr/bin:/bin"} <= set(done.stdout.splitlines())


def test_a_template_that_cannot_start_the_paradigm_names_those_that_can() -> None:
    with pytest.raises(ComposeError, match=r"these do: .*torchrun"):
        cases.plan("delta", "tp", template="lightning")


def test_a_broken_template_file_is_named_with_its_key(tmp_path: Path) -> None:
    good = (cases.ROOT / "agents" / "retrieval" / "templates" / "torchrun.toml").read_text()
    for change, word in ((("{nodes}", "{nodez}"), "nodez"), (("fsdp = {}", "fsdq = {}"), "fsdq"), (("= 1", "= "), "")):
        file = tmp_path / "mine.toml"
        file.write_text(good.replace(*change))
        with pytest.raises(ConfigurationError, match=r"mine\.toml") as caught:
            template.load(tmp_path)
        assert word in str(caught.value)


def test_a_template_of_ones_own_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = (cases.ROOT / "agents" / "retrieval" / "templates" / "plain.toml").read_text()
    (tmp_path / "mine.toml").write_text(shipped.replace('name = "plain"', 'name = "our-group"'))
    monkeypatch.setenv("MAPLE_TEMPLATE_PATH", str(tmp_path))
    fields = {"nodes": 2, "walltime": "1h", "account": "abcd-delta-gpu", "queue": "gpuA100x4"}
    plan = maple_parsl.plan("gpt", "ddp", "delta", template="our-group", **fields)
    assert plan.template == "our-group"
    assert "srun" in plan.script
