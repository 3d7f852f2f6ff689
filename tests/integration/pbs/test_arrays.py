"""A sweep on PBS job arrays, against STAND-INS: they number and name elements as recorded, and prove no real PBS."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import maple_parsl
from maple_parsl.runs import backend, place
from maple_parsl.runs.state import RunState
from maple_parsl.runs.submit import element_of
from tests.testbeds.pbs.cluster import PbsStandIn

pytestmark = pytest.mark.timeout(180)
PROGRAM = """\
import os, sys
print("element", os.environ["MAPLE_ELEMENT"], "seed", sys.argv[-1], "port", os.environ["MASTER_PORT"], flush=True)
sys.exit(5 if sys.argv[-1] == "2" and os.environ["RANK"] == "0" else 0)
"""


def test_a_sweep_of_six_over_arrays_of_four(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pbs = PbsStandIn(tmp_path / "pbs", queues={"debug": "01:00:00"})
    for name, value in pbs.environment.items():
        monkeypatch.setenv(name, value)
    sites = tmp_path / "config" / "sites"
    sites.mkdir(parents=True)
    (sites / "polaris.toml").write_text('extends = "polaris"\n[scheduler]\nmax_array = 4\n')
    for name, value in {
        "MAPLE_CONFIG_HOME": str(tmp_path / "config"),
        "MAPLE_HOME": str(tmp_path / "home"),
        "MAPLE_POLL_SECONDS": "0.3",
        "MAPLE_SITE": "polaris",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(place, "_NODE_LOCAL", ("/dev/shm",))
    monkeypatch.chdir(tmp_path)
    backend._backends.clear()
    Path("program.py").write_text(PROGRAM)
    sweep = maple_parsl.map(
        [{"seed": seed} for seed in range(6)], script="program.py", site="polaris", account="demo", queue="debug",
        nodes=1, gpus_per_node=1, walltime="10m", template="plain", parallel=2, yes=True, directives=(),
    )  # fmt: skip
    outcomes = sweep.result(150)
    assert [outcome.state for outcome in outcomes] == [
        RunState.FAILED if seed == 2 else RunState.DONE for seed in range(6)
    ], [run.logs() for run in sweep.runs]
    assert outcomes[2].code == 5
    assert [run.job_id for run in sweep.runs] == [f"1[{i}].pbsserver" for i in range(3)] + [
        f"2[{i}].pbsserver" for i in range(3)
    ]
    for seed, run in enumerate(sweep.runs):
        assert f"element {seed % 3} seed {seed} " in run.logs()
        assert json.loads((run.run_dir / "exit.json").read_text())["job_id"] == os.readlink(run.run_dir / "claim")
    assert "#PBS -J 0-2%2" in (sweep.folder / "script.sh").read_text()


def test_the_ids_of_elements() -> None:
    assert element_of("12", 3) == element_of("12_7", 3) == element_of("12_[4-9%2]", 3) == "12_3"
    assert element_of("12[].server.org", 3) == element_of("12[5].server.org", 3) == "12[3].server.org"
