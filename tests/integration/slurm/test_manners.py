"""The many small things sites ask for, on a real Slurm with accounting: each is really in the job."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import maple_parsl
from maple_parsl.runs import backend, place
from maple_parsl.runs.state import RunState
from tests.integration import kills
from tests.integration.slurm import bed as site
from tests.testbeds.slurm.cluster import Testbed
from tests.testbeds.slurm.config import BedConfig
from tests.testbeds.slurm.fixtures import require_testbed

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]
ONE = {"site": "bed", "nodes": 1, "gpus_per_node": 1, "walltime": "5m", "queue": "gpu"}


@pytest.fixture(scope="module")
def licensed() -> Iterator[Testbed]:
    require_testbed(accounting=True)
    with Testbed(BedConfig(nodes=2, accounting=True, settings={"Licenses": "matlab:2"})) as bed:
        bed.run(["scontrol", "update", "NodeName=node2", "AvailableFeatures=fast", "ActiveFeatures=fast"])
        words = ["ReservationName=course", "StartTime=now", "Duration=60", "Nodes=node2", "Users=root"]
        bed.run(["scontrol", "create", *words])
        yield bed


def prepare(bed: Testbed, folder: Path, monkeypatch: pytest.MonkeyPatch, **facts: str) -> None:
    kills.prepare(folder, monkeypatch)
    file = folder / "config" / "sites" / "bed.toml"
    text = file.read_text()
    for after, line in facts.items():
        mark = {
            "scheduler": 'kind = "slurm"\n',
            "directives": 'gpu_request = "gpus-per-node"\n',
            "kind": "cores = 16\n",
        }
        text = text.replace(mark[after], mark[after] + line)
    file.write_text(text)
    commands = site.put_commands(bed, folder / "commands")
    (commands / "sacctmgr").write_text((commands / "sinfo").read_text().replace("sinfo", "sacctmgr"))
    monkeypatch.setenv("PATH", f"{commands}:{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setattr(place, "_NODE_LOCAL", ("/dev/shm",))
    backend._backends.clear()


def test_clusters_account_reservation_licence_mail_constraint(
    licensed: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(licensed, tmp_path, monkeypatch, scheduler='clusters = "maple"\n')
    Path("program.py").write_text("import os; print('on', os.uname().nodename, flush=True)\n")
    wanted = ("--reservation=course", "--licenses=matlab:1", "--mail-type=END", "--mail-user=me@example.org", "-C fast")
    run = maple_parsl.run(script="program.py", account="proj1", cpus=1, directives=wanted, **ONE)
    assert "#SBATCH --clusters=maple" in (run.run_dir / "script.sh").read_text()
    outcome = run.result(150)
    assert outcome.ok, run.logs()
    assert "on node2" in run.logs()
    job = licensed.job(int(outcome.job_id or 0))
    assert (job["Account"], job["Reservation"], job["Licenses"]) == ("proj1", "course", "matlab:1")
    assert (job["MailType"], job["MailUser"], job["Features"]) == ("END", "me@example.org", "fast")
    sweep = maple_parsl.map([["1"], ["2"]], script="program.py", account="proj1", cpus=1, **ONE)
    assert [outcome.state for outcome in sweep.result(150)] == [RunState.DONE] * 2


def test_a_part_of_a_shared_node_gets_its_share_of_cores_and_memory(
    slurm: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without accounting, too: one GPU, and with it a quarter of the node's cores and of its memory."""
    facts = {"directives": 'memory = "whole-node"\n', "kind": "memory_gib = 62\n"}
    prepare(slurm, tmp_path, monkeypatch, **facts)
    Path("program.py").write_text("import time; time.sleep(3)\n")
    runs = [maple_parsl.run(script="program.py", directives=("--nodelist=node1",), **ONE) for _ in range(4)]
    outcomes = [run.result(150) for run in runs]
    assert all(outcome.ok for outcome in outcomes)
    jobs = [slurm.job(int(outcome.job_id or 0)) for outcome in outcomes]
    for job in jobs:
        assert job["NumCPUs"] == "4"
        assert job["MinMemoryNode"] == "13G"
        assert job["TresPerNode"].endswith("gpu:1")
    assert len({job["NodeList"] for job in jobs}) == 1
    begun, ended = [job["StartTime"] for job in jobs], [job["EndTime"] for job in jobs]
    assert max(begun) < min(ended), "they did not share the node"
