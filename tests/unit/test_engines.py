"""Each container engine's command line, word for word, by vendor of the devices."""

from __future__ import annotations

from typing import Any

import pytest

from maple_parsl.compose import compose
from maple_parsl.errors import ComposeError
from maple_parsl.plan import Plan
from maple_parsl.request import Request
from maple_parsl.shell import line
from maple_parsl.site import Site
from tests import cases

VENDORS = {"nvidia": ("nccl", "cuda"), "amd": ("nccl", "cuda"), "intel": ("xccl", "xpu")}
OURS = '--bind "$MAPLE_RUN_DIR" --bind "$MAPLE_WORK_DIR"'
PODMAN = '--env-host --network=host --workdir "$MAPLE_WORK_DIR"'
MOUNTS = '--volume "$MAPLE_RUN_BIND" --volume "$MAPLE_WORK_BIND"'
GOLDEN = {
    ("apptainer", "nvidia"): f"apptainer exec --nv --bind \"$SCRATCH\"/data:/data:ro {OURS} 'my image.sif'",
    ("apptainer", "amd"): f"apptainer exec --rocm --bind \"$SCRATCH\"/data:/data:ro {OURS} 'my image.sif'",
    ("apptainer", "intel"): f"apptainer exec --bind \"$SCRATCH\"/data:/data:ro {OURS} 'my image.sif'",
    ("singularity", "nvidia"): f"singularity exec --nv --bind \"$SCRATCH\"/data:/data:ro {OURS} 'my image.sif'",
    ("singularity", "amd"): f"singularity exec --rocm --bind \"$SCRATCH\"/data:/data:ro {OURS} 'my image.sif'",
    ("shifter", "nvidia"): "shifter '--image=my image.sif' --volume=\"$SCRATCH\"/data:/data:ro",
    ("podman-hpc", "nvidia"): f"podman-hpc run --rm --gpu {PODMAN}"
    f" --volume \"$SCRATCH\"/data:/data:ro {MOUNTS} 'my image.sif'",
    ("podman-hpc", "amd"): f"podman-hpc run --rm {PODMAN} --volume \"$SCRATCH\"/data:/data:ro {MOUNTS} 'my image.sif'",
}  # fmt: skip


def made(vendor: str = "nvidia", facts: dict[str, Any] | None = None, case: str = "perlmutter", **fields: Any) -> Plan:
    """A plan at a site whose devices are of that vendor, and whose environment has only these facts."""
    raw = cases.site(case).model_dump(mode="json", exclude_unset=True)
    backend, device = VENDORS[vendor]
    for kind in raw["kinds"].values():
        kind |= {"vendor": vendor, "backend": backend, "torch_device": device, "environment": "default"}
    source = {"source": "the test", "checked_on": "2026-12-01"}
    raw["environments"] = {"default": {**source, **(facts or {})}}
    site = Site.model_validate_json(__import__("json").dumps(raw))
    stated = {"nodes": 2, "walltime": "30m", "script": "train.py", **cases.SITES[case], **fields}
    return compose(Request.of(**stated), site, cases.templates())


@pytest.mark.parametrize(("engine", "vendor"), GOLDEN)
def test_the_command_of_an_engine(engine: str, vendor: str) -> None:
    plan = made(vendor, container="my image.sif", engine=engine, binds=["$SCRATCH/data:/data:ro"])
    assert line(plan.launch.container) == GOLDEN[engine, vendor]
    assert f"{engine} " in plan.script


def test_a_sites_own_flags_are_kept_and_not_doubled() -> None:
    facts = {"container_engine": "apptainer", "container_flags": ["--nv", "--cleanenv"], "container_setup": ["true"]}
    plan = made(facts=facts, container="i.sif")
    assert line(plan.launch.container).startswith('apptainer exec --nv --cleanenv --bind "$MAPLE_RUN_DIR"')
    assert "true" in [step.line for step in plan.setup]
    other = made(facts=facts, container="i.sif", engine="singularity")
    assert "--cleanenv" not in line(other.launch.container)


def test_no_engine_is_guessed() -> None:
    with pytest.raises(ComposeError, match="no engine is known"):
        made(container="i.sif")


def test_conda_in_a_shell_that_read_no_start_up_files() -> None:
    lines = [step.line for step in made(conda="my-env").setup]
    assert lines[0].startswith("command -v conda")
    assert "CONDA_EXE" in lines[0]
    assert lines[1:] == ['eval "$(conda shell.bash hook)"', "conda activate my-env"]
    own = [step.line for step in made(facts={"conda": ["module load conda"]}, conda="my-env").setup]
    assert "module load conda" in own
    assert not any("CONDA_EXE" in text for text in own)


def test_offline_nodes_are_told_to_the_programs_unless_stated() -> None:
    plan = made(facts={"outbound": "none"})
    exports = {export.name: export for export in plan.exports}
    assert (exports["WANDB_MODE"].value, exports["HF_HUB_OFFLINE"].value) == ("offline", "1")
    assert exports["WANDB_MODE"].origin.source == "the test"
    stated = {e.name: e.value for e in made(facts={"outbound": "none"}, env={"WANDB_MODE": "disabled"}).exports}
    assert stated["WANDB_MODE"] == "disabled"
    assert "WANDB_MODE" not in {export.name for export in made(facts={"outbound": "direct"}).exports}
    assert "WANDB_MODE" not in {export.name for export in made().exports}  # unknown


def test_a_secret_is_read_in_the_job_and_stands_nowhere() -> None:
    plan = made(secrets={"WANDB_API_KEY": "~/.wandb key", "HF_TOKEN": None})
    assert "WANDB_API_KEY=$(cat -- \"$HOME\"'/.wandb key') && export WANDB_API_KEY" in plan.script
    assert "printenv HF_TOKEN >/dev/null" in plan.script
    with pytest.raises(ComposeError, match="PBS"):
        made(case="polaris", secrets={"HF_TOKEN": None})
    with pytest.raises(ComposeError, match="in a file"):
        made(secrets={"HF_TOKEN": "~/t"}, template="deepspeed-hostfile", paradigm="zero")
