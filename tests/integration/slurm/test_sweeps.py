"""Sweeps, chains and dependent runs on a real Slurm."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import maple_parsl
from maple_parsl.cli import main
from maple_parsl.runs import backend, place
from maple_parsl.runs.run import Run
from maple_parsl.runs.state import RunState
from maple_parsl.schedulers import commands
from tests.integration import kills
from tests.integration.slurm import bed as site
from tests.testbeds.slurm.cluster import Testbed

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]
ONE = {"site": "bed", "nodes": 1, "gpus_per_node": 1, "walltime": "5m", "queue": "gpu", "cpus": 1}
PROGRAM = """\
import os, sys
lr, seed = (sys.argv[sys.argv.index(name) + 1] for name in ("--lr", "--seed"))
print("element", os.environ["MAPLE_ELEMENT"], "lr", lr, "seed", seed, "port", os.environ["MASTER_PORT"], flush=True)
sys.exit(3 if seed == "7" else 0)
"""


@pytest.fixture(autouse=True)
def bed(slurm: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Testbed]:
    kills.prepare(tmp_path, monkeypatch)
    file = next(tmp_path.rglob("bed.toml"))
    file.write_text(file.read_text().replace('kind = "slurm"\n', 'kind = "slurm"\nmax_array = 16\n'))
    folder = site.put_commands(slurm, tmp_path / "commands")
    monkeypatch.setenv("PATH", f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setattr(place, "_NODE_LOCAL", ("/dev/shm",))  # the nodes of this cluster share /tmp
    backend._backends.clear()
    yield slurm
    slurm.cancel_all()


def until(test: Callable[[], bool], seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < end
        time.sleep(0.2)


def test_forty_runs_over_an_array_limit_of_sixteen(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("program.py").write_text(PROGRAM)
    sent: list[str] = []
    real = commands.run
    monkeypatch.setattr(commands, "run", lambda argv, **more: (sent.append(argv[0]), real(argv, **more))[1])
    params = [{"lr": lr, "seed": seed} for lr in ("1e-3", "3e-4") for seed in range(20)]
    sweep = maple_parsl.map(params, script="program.py", parallel=12, **ONE)
    assert [Path(word).name for word in sent].count("sbatch") == 3
    outcomes = sweep.result(250)
    assert len(outcomes) == 40
    assert Counter(outcome.state for outcome in outcomes) == {RunState.DONE: 38, RunState.FAILED: 2}
    assert len({outcome.job_id for outcome in outcomes}) == 40
    assert len({outcome.run_dir for outcome in outcomes}) == 40
    for run, stated, outcome in zip(sweep.runs, params, outcomes, strict=True):
        assert f"lr {stated['lr']} seed {stated['seed']} " in run.logs()
        record = json.loads((run.run_dir / "exit.json").read_text())
        assert record["job_id"] == outcome.job_id == os.readlink(run.run_dir / "claim")
        assert record["code"] == outcome.code == (3 if stated["seed"] == 7 else 0)
    ports = {run.logs().partition("port ")[2].split()[0] for run in sweep.runs[:10]}
    assert len(ports) == 10
    assert not sweep.ok
    again = maple_parsl.Group.open(sweep.id.rpartition("-")[2])
    assert [run.id for run in again.runs] == [run.id for run in sweep.runs]


def test_a_sweep_by_the_command_line_and_its_end(bed: Testbed, capsys: pytest.CaptureFixture[str]) -> None:
    Path("program.py").write_text("import time; time.sleep(100)\n")
    words = "run --script program.py --site bed -N 1 --gpus-per-node 1 -t 5m -q gpu --cpus 1 --json".split()
    assert main([*words, "--array", "lr=1,2", "--array", "seed=0-2", "--parallel", "2"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert len(made["runs"]) == 6
    base = made["runs"][0]["job_id"].partition("_")[0]
    assert [row["job_id"] for row in made["runs"]] == [f"{base}_{index}" for index in range(6)]
    first = Run.open(made["runs"][0]["run"])
    until(lambda: first.state is RunState.RUNNING)
    until(lambda: bed.run(["squeue", "-h", "-r", "-t", "R", "-j", base]).stdout.count("\n") == 2)
    first.cancel()
    assert first.result(90).state is RunState.CANCELLED
    assert main(["cancel", made["group"]]) == 0
    group = maple_parsl.Group.open(made["group"])
    assert {outcome.state for outcome in group.result(120)} == {RunState.CANCELLED}


def test_a_run_after_another() -> None:
    Path("program.py").write_text("import sys; print('ran', flush=True); sys.exit(int(sys.argv[1]))\n")
    good = maple_parsl.run(script="program.py", args=("0",), **ONE)
    bad = maple_parsl.run(script="program.py", args=("4",), **ONE)
    then = maple_parsl.run(script="program.py", args=("0",), after=good.id, after_any=[bad.id], **ONE)
    never = maple_parsl.run(script="program.py", args=("0",), after=[bad.id], **ONE)
    assert then.result(150).ok
    assert bad.outcome()
    assert good.result(10).ended <= then.result(1).started  # type: ignore[operator]
    until(lambda: never.status().never)
    assert never.status().explanation
    never.cancel()
    assert never.result(90).state is RunState.CANCELLED


STEPS = """\
import os, signal, sys, time
file = os.path.join(os.environ["MAPLE_RUN_DIR"], "checkpoints", "step")
step = int(open(file).read()) if os.environ["MAPLE_RESUME"] == "1" and os.path.exists(file) else 0
print("starts at", step, "resume", os.environ["MAPLE_RESUME"], flush=True)
def save(*_):
    open(file, "w").write(str(step + 1))
    sys.exit(75)
signal.signal(signal.SIGUSR1, save)
if step < 2:
    print("waiting", flush=True)
    time.sleep(200)
"""


def test_a_chain_resumes_twice_and_stops_on_success(bed: Testbed) -> None:
    Path("program.py").write_text(STEPS)
    chain = maple_parsl.chain(5, script="program.py", **ONE)
    for run in chain.runs[:2]:
        until(lambda run=run: "waiting" in run.logs())  # type: ignore[misc]
        bed.run(["scancel", "--batch", "--signal=USR1", str(run.job_id)])  # as Slurm does before the walltime
    third = chain.runs[2].result(120)
    assert third.ok
    assert [("starts at", run.logs().partition("starts at ")[2].split("\n")[0]) for run in chain.runs[:3]] == [
        ("starts at", "0 resume 0"),
        ("starts at", "1 resume 1"),
        ("starts at", "2 resume 1"),
    ]
    assert chain.runs[0].result(30).code == 75
    assert [run.result(60).state for run in chain.runs[3:]] == [RunState.CANCELLED] * 2
    assert not any((run.run_dir / "started.json").exists() for run in chain.runs[3:])
    assert chain.ok


def test_a_chain_that_fails_the_same_way_twice_stops() -> None:
    Path("program.py").write_text("import sys; print('ran', flush=True); sys.exit(9)\n")
    chain = maple_parsl.chain(4, script="program.py", **ONE)
    outcomes = chain.result(150)
    assert [(outcome.state, outcome.code) for outcome in outcomes[:2]] == [(RunState.FAILED, 9)] * 2
    assert [outcome.state for outcome in outcomes[2:]] == [RunState.CANCELLED] * 2
    assert (chain.folder / "stop").read_text() == "two jobs in a row ended the same way: failed with code 9\n"
    assert not chain.ok


def test_a_client_that_dies_leaves_no_second_array(monkeypatch: pytest.MonkeyPatch) -> None:
    """The array was sent and its id never noted: each element finds its own by the array's name."""
    Path("program.py").write_text("print('ran', flush=True)\n")
    from maple_parsl.runs import submit

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(submit, "record", killed)
        with pytest.raises(KeyboardInterrupt):
            maple_parsl.map([[str(n)] for n in range(3)], script="program.py", **ONE)
    runs = maple_parsl.runs()
    assert len(runs) == 3
    assert all(run.result(120).ok for run in runs)
    assert len({run.job_id.partition("_")[0] for run in runs if run.job_id}) == 1
