"""Submission and questions, against a real Slurm."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from maple_parsl.errors import SchedulerError, SubmissionError
from maple_parsl.schedulers import JobInfo, JobState, commands
from maple_parsl.schedulers.slurm import Slurm
from tests.integration.slurm import bed as site
from tests.testbeds.slurm.cluster import Testbed

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(180)]
SLEEP = "import time; time.sleep(120)\n"
PRINT = """\
import json, os
folder = os.environ["MAPLE_RUN_DIR"]
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "SLURM_JOB_ID", "SLURM_NTASKS", "CUDA_VISIBLE_DEVICES", "MASTER_ADDR")
with open(f"{folder}/rank{os.environ['RANK']}.json", "w") as file:
    json.dump({name: os.environ.get(name) for name in names} | {"host": os.uname().nodename}, file)
"""


@pytest.fixture
def on_path(slurm: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Testbed]:
    folder = site.put_commands(slurm, tmp_path / "commands")
    monkeypatch.setenv("PATH", f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}")
    yield slurm
    slurm.cancel_all()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Every external command, in order."""
    seen: list[tuple[str, ...]] = []
    real = commands.run

    def run(argv: Any, **options: Any) -> Any:
        seen.append(tuple(argv))
        return real(argv, **options)

    monkeypatch.setattr(commands, "run", run)
    return seen


def wait_for(test: Callable[[], JobInfo], *states: JobState, timeout: float = 60) -> JobInfo:
    end = time.monotonic() + timeout
    while (info := test()).state not in states:
        assert time.monotonic() < end, info
        time.sleep(0.2)
    return info


def waited(scheduler: Slurm, job_id: str, *states: JobState) -> JobInfo:
    wanted = states or tuple(state for state in JobState if state.ended)
    return wait_for(lambda: scheduler.query([job_id])[job_id], *wanted)


def test_the_script_is_sent_byte_for_byte(on_path: Testbed, tmp_path: Path, counted: list[tuple[str, ...]]) -> None:
    plan = site.plan(tmp_path, SLEEP, "bytes-run")
    job_id = Slurm().submit(plan, site.script_of(plan))
    assert [argv[0] for argv in counted] == ["sbatch"]
    assert on_path.run(["scontrol", "write", "batch_script", job_id, "-"]).stdout.rstrip("\n") == plan.script.rstrip(
        "\n"
    )
    fields = on_path.job(int(job_id))
    assert fields["JobName"] == "maple-bytes-run"
    assert fields["NumNodes"] == "2-2" or fields["NumNodes"] == "2"


def test_a_run_ends_with_its_ranks_in_place(on_path: Testbed, tmp_path: Path) -> None:
    plan = site.plan(tmp_path, PRINT, "ranks-run")
    job_id = Slurm().submit(plan, site.script_of(plan))
    info = waited(Slurm(), job_id)
    run = tmp_path / "ranks-run"
    log = (run / "log.txt").read_text()
    assert (info.state, info.exit_code, info.source) == (JobState.done, 0, "squeue"), log
    ranks = [json.loads((run / f"rank{rank}.json").read_text()) for rank in range(4)]
    assert [rank["RANK"] for rank in ranks] == ["0", "1", "2", "3"]
    assert {rank["WORLD_SIZE"] for rank in ranks} == {"4"}
    assert len({rank["host"] for rank in ranks}) == 2
    assert os.readlink(run / "claim") == job_id
    assert json.loads((run / "exit.json").read_text())["code"] == 0


def test_from_inside_a_bound_step_a_job_gets_its_own_values(on_path: Testbed, tmp_path: Path) -> None:
    plan = site.plan(tmp_path, PRINT, "inner-run")
    (tmp_path / "plan.json").write_text(plan.to_json())
    (tmp_path / "inner.py").write_text(
        "import sys; from pathlib import Path\n"
        "from maple_parsl.plan import Plan; from maple_parsl.schedulers import scheduler\n"
        f"plan = Plan.from_json(Path({str(tmp_path / 'plan.json')!r}).read_text())\n"
        f"print(scheduler('slurm').submit(plan, Path({str(site.script_of(plan))!r})))\n"
    )
    here = {"PYTHONPATH": str(Path(__file__).parents[3]), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    outer = on_path.run(
        ["srun", "-N1", "-n1", "-p", "gpu", "--gpus-per-node=1", "--mem=500", sys.executable, tmp_path / "inner.py"],
        env={**here, "RANK": "7", "WORLD_SIZE": "8", "MASTER_ADDR": "elsewhere", "SBATCH_PARTITION": "debug"},
        cwd=tmp_path,
    )
    job_id = outer.stdout.strip()
    info = waited(Slurm(), job_id)
    run = tmp_path / "inner-run"
    assert info.state is JobState.done, (run / "log.txt").read_text()
    ranks = [json.loads((run / f"rank{rank}.json").read_text()) for rank in range(4)]
    assert {(rank["SLURM_NTASKS"], rank["SLURM_JOB_ID"], rank["WORLD_SIZE"]) for rank in ranks} == {("4", job_id, "4")}
    assert {len(rank["CUDA_VISIBLE_DEVICES"].split(",")) for rank in ranks} == {2}  # the step had one
    assert on_path.job(int(job_id))["Partition"] == "gpu"


def test_one_command_tells_of_any_number_of_jobs(
    on_path: Testbed, tmp_path: Path, counted: list[tuple[str, ...]]
) -> None:
    script = "#!/bin/bash\nexit 3\n"
    ids = [str(on_path.submit(script, f"--job-name=many|{n}", "-o", "/dev/null")) for n in range(12)]
    on_path.wait_job(int(ids[-1]))
    for job_id in ids:
        on_path.wait_job(int(job_id))
    scheduler = Slurm()
    infos = scheduler.query([*ids, *ids])
    assert [argv[0] for argv in counted] == ["squeue"]
    assert list(infos) == ids
    assert {(info.state, info.exit_code, info.exit_signal) for info in infos.values()} == {(JobState.failed, 3, None)}
    assert [info.name for info in infos.values()] == [f"many|{n}" for n in range(12)]


def test_a_job_nobody_knows_is_unknown(on_path: Testbed) -> None:
    infos = Slurm().query(["999999", "999998"])
    assert {info.state for info in infos.values()} == {JobState.unknown}
    assert "does not know this job" in (infos["999999"].explanation or "")


def test_arrays(on_path: Testbed) -> None:
    script = "#!/bin/bash\n[ $SLURM_ARRAY_TASK_ID = 1 ] && exit 9\nexit 0\n"
    job = str(on_path.submit(script, "-a", "0-2", "-o", "/dev/null"))
    assert waited(Slurm(), job).exit_code == 9
    infos = Slurm().query([f"{job}_0", f"{job}_1"])
    assert (infos[f"{job}_0"].state, infos[f"{job}_1"].state) == (JobState.done, JobState.failed)


def test_a_waiting_job_says_why_and_when(on_path: Testbed) -> None:
    script = "#!/bin/bash\nsleep 120\n"
    on_path.submit(script, "-N4", "--exclusive", "-t", "5", "-o", "/dev/null")
    waiting = str(on_path.submit(script, "-N4", "--exclusive", "-t", "5", "-o", "/dev/null"))
    info = wait_for(
        lambda: (i := Slurm().query([waiting])[waiting], JobInfo(waiting, JobState.unknown, "", "squeue"))[
            0 if i.start_estimate else 1
        ],
        JobState.pending,
    )
    assert info.reason in ("Resources", "Priority")
    assert info.explanation
    assert not info.never
    assert info.start_estimate is not None
    assert 200 < info.start_estimate - time.time() < 400
    dependent = str(on_path.submit(script, "-d", "afterok:1:99999", "-o", "/dev/null"))
    held = str(on_path.submit(script, "--hold", "-o", "/dev/null"))
    infos = Slurm().query([dependent, held])
    assert infos[held].reason == "JobHeldUser"
    assert infos[dependent].state is JobState.pending


def test_find_is_by_the_exact_name(on_path: Testbed, tmp_path: Path) -> None:
    script = "#!/bin/bash\nexit 0\n"
    ids = [str(on_path.submit(script, "-J", name, "-o", "/dev/null")) for name in ("maple-a", "maple-a", "maple-ab")]
    for job_id in ids:
        on_path.wait_job(int(job_id))
    found = Slurm().find(["maple-a", "maple-none"])
    assert [info.job_id for info in found["maple-a"]] == ids[:2]
    assert found["maple-none"] == []


def test_cancel(on_path: Testbed, tmp_path: Path) -> None:
    plan = site.plan(tmp_path, SLEEP, "cancel-run")
    scheduler = Slurm()
    job_id = scheduler.submit(plan, site.script_of(plan))
    waited(scheduler, job_id, JobState.running)
    scheduler.cancel(job_id)
    assert waited(scheduler, job_id).state is JobState.cancelled
    scheduler.cancel(job_id)
    scheduler.cancel("999999")


def test_walltime_and_node_failure(on_path: Testbed, tmp_path: Path) -> None:
    slept = "#!/bin/bash\nsleep 300\n"
    job_id = str(on_path.submit(slept, "-w", "node3", "--no-requeue", "-o", "/dev/null"))
    waited(Slurm(), job_id, JobState.running)
    on_path.kill_node("node3")
    info = waited(Slurm(), job_id)
    assert (info.state, info.explanation) == (JobState.node_failure, "One of its nodes failed.")
    on_path.restart_node("node3")


def test_refusals_carry_the_schedulers_words(on_path: Testbed, tmp_path: Path) -> None:
    plan = site.plan(tmp_path, SLEEP, "refused-run", directives=("--constraint=nosuch",))
    with pytest.raises(SubmissionError, match=r"sbatch refused the job: .*feature"):
        Slurm().submit(plan, site.script_of(plan))
    assert Slurm().find([plan.job_name]) == {plan.job_name: []}
    site.script_of(plan).write_text("another\n")
    with pytest.raises(SubmissionError, match="not the script of this plan"):
        Slurm().submit(plan, site.script_of(plan))


def test_an_absent_or_hanging_controller(on_path: Testbed) -> None:
    on_path.stop_controller("hang")
    try:
        with pytest.raises(SchedulerError, match="squeue did not answer within 2 s"):
            Slurm(deadline=2).query(["1"])
    finally:
        on_path.start_controller()
    on_path.stop_controller("stop")
    try:
        with pytest.raises(SchedulerError) as caught:
            Slurm(deadline=2).query(["1"])
    finally:
        on_path.start_controller()
    assert not isinstance(caught.value, SubmissionError)


def test_accounting_knows_older_jobs(
    slurm_accounting: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = site.put_commands(slurm_accounting, tmp_path / "commands")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    job = slurm_accounting.submit("#!/bin/bash\nexit 4\n", "-J", "maple-old", "-o", "/dev/null")
    slurm_accounting.wait_job(job)
    scheduler = Slurm()
    monkeypatch.setattr(scheduler, "_squeue", lambda *options: [])  # as after MinJobAge
    info = wait_for(lambda: scheduler.query([str(job)])[str(job)], JobState.failed)
    assert (info.exit_code, info.source) == (4, "sacct")
    end = time.monotonic() + 30  # the name of a short job comes late
    while scheduler.query([str(job)])[str(job)].name != "maple-old":
        assert time.monotonic() < end
        time.sleep(0.5)
    assert [found.job_id for found in scheduler.find(["maple-old"])["maple-old"]] == [str(job)]


def test_a_requeued_job_waits_and_counts_its_starts(on_path: Testbed) -> None:
    job = on_path.submit(
        "#!/bin/bash\n[ ${SLURM_RESTART_COUNT:-0} = 1 ] && exit 0\nsleep 300\n", "--requeue", "-o", "/dev/null"
    )
    waited(Slurm(), str(job), JobState.running)
    on_path.run(["scontrol", "requeue", str(job)])
    info = waited(Slurm(), str(job), JobState.pending)
    assert info.restarts == 1
    end = time.monotonic() + 30
    while Slurm().query([str(job)])[str(job)].reason != "BeginTime":
        assert time.monotonic() < end
        time.sleep(0.2)
    on_path.release(job)
    assert waited(Slurm(), str(job)).state is JobState.done


def test_the_parts_of_a_heterogeneous_job_are_one(on_path: Testbed) -> None:
    script = "#!/bin/bash\n#SBATCH -N1\n#SBATCH hetjob\n#SBATCH -N1\nsleep 300\n"
    job = str(on_path.submit(script, "-J", "maple-het", "-o", "/dev/null"))
    assert waited(Slurm(), job, JobState.running).name == "maple-het"
    assert Slurm().query([f"{job}+1"])[f"{job}+1"].state is JobState.running
    Slurm().cancel(job)
    assert waited(Slurm(), job).state is JobState.cancelled


def test_a_job_script_cannot_be_submitted_twice_by_a_doubt(
    on_path: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """sbatch gets the job in and its answer is lost: the caller learns of the doubt and finds the job."""
    plan = site.plan(tmp_path, SLEEP, "lost-answer")
    real = commands.run

    def lose(argv: Any, **options: Any) -> Any:
        answer = real(argv, **options)
        if argv[0] == "sbatch":
            raise SchedulerError("sbatch did not answer within 60 s")
        return answer

    monkeypatch.setattr(commands, "run", lose)
    with pytest.raises(SchedulerError, match="the job may exist, look for it by its name maple-lost-answer"):
        Slurm().submit(plan, site.script_of(plan))
    assert len(Slurm().find([plan.job_name])[plan.job_name]) == 1
