"""The launcher's command alone, in a script of one's own: the verifier finds nothing, bash can run it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from maple_parsl.checking import inspect
from maple_parsl.errors import RequestError
from maple_parsl.script import rank_map
from maple_parsl.script.launch_line import launch_line
from tests import cases

SITES = [name for name in cases.SITES if name != "local"]


@pytest.mark.parametrize("case", SITES)
@pytest.mark.parametrize("template", ["torchrun", "plain"])
def test_in_a_script_of_ones_own_it_starts_the_same_ranks(case: str, template: str) -> None:
    plan = cases.plan(case, model=None, script="train.py", template=template)
    prefix = {"slurm": "#SBATCH", "pbs": "#PBS"}[plan.scheduler]
    rows = [plan.shebang, *(f"{prefix} {directive.option}" for directive in plan.directives)]
    rows += [step.line for step in plan.setup] + [f"export {e.name}='{e.value}'" for e in plan.exports]
    script = "\n".join([*rows, launch_line(plan)]) + "\n"
    report = inspect(script, cases.site(plan.site))
    assert [f for f in report.findings if f.severity == "error"] == [], script
    (ranks,) = rank_map(report.script, cases.site(plan.site)).launches
    assert ranks.world_size == plan.shape.world_size, script
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, timeout=20, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_each_process_derives_its_own_place(tmp_path: Path) -> None:
    plan = cases.plan("perlmutter", model=None, script="train.py", template="plain", args=("it's", "$HOME"))
    (tmp_path / "srun").write_text(
        '#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nSLURM_PROCID=5 SLURM_LOCALID=1 exec "$@"\n'
    )
    (tmp_path / "python3").write_text(
        '#!/bin/sh\necho "$RANK $LOCAL_RANK $WORLD_SIZE $MASTER_ADDR $MASTER_PORT" "$@"\n'
    )
    (tmp_path / "scontrol").write_text("#!/bin/sh\necho node1; echo node2\n")
    for name in ("srun", "python3", "scontrol"):
        (tmp_path / name).chmod(0o755)
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_ID": "12001"}
    done = subprocess.run(["bash"], input=launch_line(plan), text=True, capture_output=True, env=environ, timeout=20)
    assert done.stdout == "5 1 8 node1 20001 -u train.py it's $HOME\n", done.stderr


def test_what_needs_more_than_a_command_is_refused() -> None:
    with pytest.raises(RequestError, match="--script"):
        launch_line(cases.plan("delta"))
    with pytest.raises(RequestError, match="file"):
        launch_line(cases.plan("delta", "zero", model=None, script="train.py", template="deepspeed-hostfile"))
