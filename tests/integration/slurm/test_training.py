"""Two-node training under a real Slurm, and every way such a run ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.slurm.login import Login
from tests.testbeds.slurm import Testbed

pytestmark = [pytest.mark.slurm, pytest.mark.torch, pytest.mark.timeout(300)]
TWO = ("--nodes", "2", "--gpus-per-node", "1")


@pytest.fixture
def login(slurm: Testbed, tmp_path: Path) -> Iterator[Login]:
    yield Login(slurm, tmp_path / "home")
    slurm.cancel_all()
    slurm.wait_idle()


@pytest.mark.parametrize("paradigm", ["ddp", "fsdp", "tp", "pp"])
def test_two_nodes_train_together(login: Login, paradigm: str) -> None:
    run = login.start("gpt", paradigm, "slurm-stand", *TWO, "--", "--steps", "20")
    status = login.until(run, "done", "failed", seconds=150)
    assert status["state"] == "done", login.log(run)[-3000:]
    ranks = login.ranks(run)
    assert [said["rank"] for said in ranks] == [0, 1]
    assert {said["host"] for said in ranks} == {"node1", "node2"}
    end = login.metrics(run)[-1]
    assert end["event"] == "end"
    assert end["last_loss"] < 0.9 * end["first_loss"]
    if paradigm in ("ddp", "fsdp"):
        assert len({said["params_sha256"] for said in ranks}) == 1
    record = status["exit"]
    assert (record["code"], record["reason"]) == (0, "done")


def test_the_rank_that_fails_is_named_with_its_code(login: Login) -> None:
    run = login.start("gpt", "ddp", "slurm-stand", *TWO, "--env", "MAPLE_FAIL=1:3:7")
    status = login.until(run, "failed", "done", seconds=150)
    assert status["state"] == "failed"
    assert status["exit"]["first_failure"]["rank"] == 1
    assert status["exit"]["first_failure"]["code"] == 7
    assert status["exit"]["first_failure"]["host"] == "node2"
    waited = login.maple("run", "--help")
    assert waited.returncode == 0
    said = login.maple("status", run).stdout
    assert "rank 1" in said
    assert "7" in said


def test_cancel(login: Login) -> None:
    run = login.start("gpt", "ddp", "slurm-stand", *TWO, "--env", "MAPLE_STEP_SLEEP=1", "--", "--steps", "200")
    login.until(run, "running")
    login.wait_for(login.run_dir(run) / "metrics.jsonl")
    assert login.maple("cancel", run).returncode == 0
    status = login.until(run, "cancelled", "failed", "done", seconds=60)
    assert status["state"] == "cancelled"
    assert login.maple("cancel", run).returncode == 0  # asked twice, the same answer


def test_walltime(login: Login) -> None:
    run = login.start(
        "gpt", "ddp", "slurm-stand", *TWO, "--walltime", "1m", "--env", "MAPLE_STEP_SLEEP=1", "--", "--steps", "500"
    )
    status = login.until(run, "timeout", "failed", "done", "cancelled", seconds=200)
    assert status["state"] == "timeout"
    assert "walltime" in login.maple("status", run).stdout


def test_a_node_that_dies(login: Login) -> None:
    run = login.start("gpt", "ddp", "slurm-stand", *TWO, "--env", "MAPLE_STEP_SLEEP=1", "--", "--steps", "500")
    login.until(run, "running")
    login.wait_for(login.run_dir(run) / "metrics.jsonl")
    try:
        login.bed.kill_node("node2")
        status = login.until(run, "node_failure", "failed", "cancelled", "unknown", seconds=90)
        assert status["state"] == "node_failure", status
    finally:
        login.bed.restart_node("node2")


def test_preempted_requeued_and_resumed_from_the_checkpoint(login: Login) -> None:
    run = login.start(
        "gpt", "ddp", "slurm-stand", "--nodes", "4", "--gpus-per-node", "4", "--requeue", "--exclusive",
        "--template", "torchrun", "--env", "MAPLE_STEP_SLEEP=0.3",
        "--", "--steps", "40", "--checkpoint-every", "5",
    )  # fmt: skip
    folder = login.run_dir(run)
    deadline = time.monotonic() + 150
    while not any((folder / "checkpoints").glob("*")):
        assert time.monotonic() < deadline, login.log(run)[-2000:]
        time.sleep(0.3)
    high = login.bed.submit("#!/bin/bash\nsleep 5\n", "-p", "high", "-N4", "--exclusive", "--time=2")
    login.bed.wait_job(high, "COMPLETED", timeout=90)
    job = int(login.status(run)["job_id"])
    login.bed.release(job)
    status = login.until(run, "done", "failed", seconds=180)
    assert status["state"] == "done", login.log(run)[-3000:]
    assert status["exit"]["attempt"] == 2
    steps = [said["step"] for said in login.metrics(run) if said["event"] == "step"]
    starts = [said for said in login.metrics(run) if said["event"] == "start"]
    assert len(starts) == 2
    assert steps[-1] == max(steps)
    second = steps[steps.index(steps[-1]) - 5 :]
    assert second == sorted(second)
    assert steps.count(1) <= 1, "the second attempt began from the start"


def test_followed_and_finished_from_another_process(login: Login) -> None:
    run = login.start("gpt", "ddp", "slurm-stand", *TWO, "--", "--steps", "15")
    script = f"import maple_parsl as m; r = m.Run.open({run!r}); print(r.result(timeout=120))"
    done = login.bed.run([sys.executable, "-c", script], cwd=login.work, env=login.env, timeout=150)
    assert "done" in done.stdout
    assert "loss" in done.stdout


def test_the_script_alone_runs_without_maple(login: Login) -> None:
    program = login.work / "train.py"
    program.write_text("import os; print('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'], flush=True)\n")
    made = login.maple(
        "plan", "--script", "train.py", "--site", "slurm-stand", *TWO, "--walltime", "2m", "--queue", "gpu",
        "--template", "plain", "--script-only", "--python", sys.executable,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    (login.work / "job.sh").write_text(made.stdout)
    bare = {"PATH": "/usr/bin:/bin", "HOME": str(login.folder)}
    sent = login.bed.run(["sbatch", "--parsable", "job.sh"], cwd=login.work, env=bare)
    job = int(sent.stdout)
    assert login.bed.wait_job(job, timeout=60)["JobState"] == "COMPLETED"
    log = (login.work / f"maple-{job}.log").read_text()
    assert {"rank 0 of 2", "rank 1 of 2"} <= set(log.splitlines())
    assert (login.work / "maple-runs" / str(job) / "exit.json").exists()


def test_own_script_environment_container_directives(login: Login) -> None:
    """The whole of what a user brings: venv, container (a stand-in engine), directives, variables, arguments."""
    (login.work / "train.py").write_text(
        "import os, sys\nprint('ran', sys.argv[1:], os.environ['COLOUR'], os.environ['RANK'], sys.prefix, flush=True)\n"
    )
    venv = login.folder / "my venv"
    login.bed.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], timeout=60)
    tools = login.folder / "tools"
    tools.mkdir()
    # A stand-in for the engine: it shows that the options are well-formed and where the inner command starts.
    (tools / "apptainer").write_text(
        '#!/bin/sh\nset -e\n[ "$1" = exec ] && shift\nwhile :; do case $1 in\n'
        "--bind) shift 2 ;; --nv) shift ;; image.sif) shift; break ;; *) echo bad $1 >&2; exit 9 ;; esac; done\n"
        'echo "inside image" ; exec "$@"\n'
    )
    (tools / "apptainer").chmod(0o755)
    run = login.json(
        "run", "--script", "train.py", "--site", "slurm-stand", *TWO, "--walltime", "3m", "--queue", "gpu", "--yes",
        "--venv", str(venv), "--container", "image.sif", "--engine", "apptainer", "--bind", "/opt:/opt",
        "--directive=--comment=mine", "--env", "COLOUR=deep red; $(x)", "--setup", f"export PATH={tools}:$PATH",
        "--template", "plain", "--no-wait", "--", "--lr", "3e-4", "it's",
    )["run"]  # fmt: skip
    status = login.until(run, "done", "failed", seconds=90)
    log = login.log(run)
    assert status["state"] == "done", log
    assert f"ran ['--lr', '3e-4', \"it's\"] deep red; $(x) 1 {venv}" in log
    assert log.count("inside image") == 4  # the processes of the preflight, then the program's
    assert login.bed.job(int(status["job_id"]))["Comment"] == "mine"


def test_here_uses_the_allocation_one_is_in(login: Login) -> None:
    before = login.bed.run(["squeue", "-h", "-t", "all", "-o", "%j"]).stdout.split()
    maple = login.command(
        "run", "gpt", "ddp", "slurm-stand", "--here", *TWO, "--walltime", "3m", "--queue", "gpu", "--yes", "--wait",
        "--python", sys.executable, "--json", "--", "--steps", "8",
    )  # fmt: skip
    inner = maple[len(login.bed.prefix_command(cwd=login.work, env=login.env)) :]
    salloc = ["salloc", "-p", "gpu", "-N2", "--gpus-per-node=1", "--ntasks-per-node=1", "-c1", "-t3", *inner]
    done = login.bed.run(salloc, cwd=login.work, env=login.env, timeout=150, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"done"' in done.stdout
    jobs = login.bed.run(["squeue", "-h", "-t", "all", "-o", "%j"]).stdout.split()
    new = [name for name in jobs if name.startswith("maple-") and name not in before]
    assert not new, "something was submitted"
