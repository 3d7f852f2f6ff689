"""Submission and questions, against STAND-INS for PBS: they answer as recorded, and prove no real PBS."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from maple_parsl.errors import SchedulerError, SubmissionError
from maple_parsl.plan import Plan, RunPlace
from maple_parsl.schedulers import JobInfo, JobState, commands
from maple_parsl.schedulers.pbs import PBS
from tests import cases
from tests.testbeds.pbs.cluster import PbsStandIn

pytestmark = pytest.mark.timeout(120)
DATA = Path(__file__).parents[2] / "data" / "pbs"
QUEUES = {"debug": "01:00:00", "main": "12:00:00", "by-node": "12:00:00", "by-gpu": "12:00:00"}
PRINT = """\
import json, os
folder = os.environ["MAPLE_RUN_DIR"]
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "PBS_JOBID", "MASTER_ADDR", "SUBMITTER")
rank = os.environ.get("RANK")
with open(f"{folder}/rank{rank}.json", "w") as file:
    json.dump({name: os.environ.get(name) for name in names} | {"host": os.uname().nodename}, file)
"""


@pytest.fixture
def pbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> PbsStandIn:
    made = PbsStandIn(tmp_path / "pbs", queues=QUEUES, **getattr(request, "param", {}))
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SUBMITTER", "not for the job")
    return made


def plan(folder: Path, case: str, name: str, program: str = PRINT, **fields: Any) -> Plan:
    script = folder / "program.py"
    script.write_text(program)
    made = cases.plan(case, model=None, script=str(script), **{"preflight": "off", **fields})
    run_dir = folder / name
    run_dir.mkdir()
    placed = made.at(RunPlace(run_id=name, run_dir=str(run_dir), work_dir=str(folder)))
    (run_dir / "script.sh").write_text(placed.script)
    return placed


def submitted(made: Plan) -> str:
    assert made.place
    return PBS().submit(made, Path(made.place.run_dir, "script.sh"))


def qsub(folder: Path, script: str, *options: str) -> str:
    (folder / "job.sh").write_text(script)
    words = ["qsub", *options, str(folder / "job.sh")]
    return subprocess.run(words, capture_output=True, text=True, check=True, cwd=folder).stdout.strip()


def waited(job_id: str, *states: JobState, timeout: float = 40) -> JobInfo:
    wanted = states or tuple(state for state in JobState if state.ended)
    end = time.monotonic() + timeout
    while (info := PBS().query([job_id])[job_id]).state not in wanted:
        assert time.monotonic() < end, info
        time.sleep(0.1)
    return info


@pytest.mark.parametrize(
    ("case", "pbs", "processes"),
    [
        ("polaris", {"dialect": "pals"}, 8),
        ("aurora", {"dialect": "pals"}, 24),
        ("derecho", {"dialect": "pals"}, 8),
        ("sophia", {"dialect": "openmpi"}, 16),
    ],
    indirect=["pbs"],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_generated_script_runs_to_its_end(pbs: PbsStandIn, tmp_path: Path, case: str, processes: int) -> None:
    more = {"template": "plain"} if case == "sophia" else {}
    made = plan(tmp_path, case, f"{case}-run", **more)
    job_id = submitted(made)
    info = waited(job_id)
    run = tmp_path / f"{case}-run"
    log = (run / "log.txt").read_text() if (run / "log.txt").exists() else (run / "scheduler.log").read_text()
    assert (info.state, info.exit_code) == (JobState.done, 0), log
    assert (pbs.folder / "scripts" / job_id).read_text() == made.script
    ranks = [json.loads((run / f"rank{rank}.json").read_text()) for rank in range(processes)]
    assert [rank["RANK"] for rank in ranks] == [str(rank) for rank in range(processes)]
    assert {rank["WORLD_SIZE"] for rank in ranks} == {str(processes)}
    assert {rank["PBS_JOBID"] for rank in ranks} == {job_id} or case == "sophia"
    assert {rank["SUBMITTER"] for rank in ranks} == {None}
    assert len({rank["MASTER_ADDR"] for rank in ranks}) == 1
    assert (run / "claim").readlink() == Path(job_id)


def test_states_and_codes(pbs: PbsStandIn, tmp_path: Path) -> None:
    five = qsub(tmp_path, "#!/bin/bash\nexit 5\n", "-N", "five")
    late = qsub(tmp_path, "#!/bin/bash\nsleep 60\n", "-N", "late", "-l", "walltime=00:00:01")
    gone = qsub(tmp_path, "#!/bin/bash\nsleep 60\n", "-N", "gone")
    held = qsub(tmp_path, "#!/bin/bash\nsleep 60\n", "-N", "held", "-h")
    never = qsub(tmp_path, "#!/bin/bash\nsleep 60\n", "-N", "never", "-l", "select=1:ncpus=1:ngpus=99")
    info = waited(five)
    assert (info.state, info.exit_code, info.name) == (JobState.failed, 5, "five")
    assert waited(gone, JobState.running).nodes == "pnode1/0"
    PBS().cancel(gone)
    assert waited(gone).state is JobState.cancelled
    PBS().cancel(gone)
    assert waited(late).state is JobState.timeout
    infos = PBS().query([held, never])
    assert (infos[held].state, infos[never].state, infos[never].never) == (JobState.pending, JobState.pending, True)
    assert infos[never].explanation == "It asks for 99 ngpus, and there are 12 in all; cancel it."
    for job_id in (held, never):
        PBS().cancel(job_id)
        assert waited(job_id).state is JobState.cancelled


def test_one_command_for_all(pbs: PbsStandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [qsub(tmp_path, "#!/bin/bash\nexit 0\n", "-N", f"n{number}") for number in range(5)]
    for job_id in ids:
        waited(job_id)
    seen: list[str] = []
    real = commands.run
    monkeypatch.setattr(commands, "run", lambda argv, **more: (seen.append(argv[0]), real(argv, **more))[1])
    infos = PBS().query([*ids, "999.pbsserver"])
    assert seen == ["qstat"]
    assert [infos[job_id].state for job_id in ids] == [JobState.done] * 5
    assert infos["999.pbsserver"].state is JobState.unknown
    found = PBS().find(["n1", "n"])
    assert ([job.job_id for job in found["n1"]], found["n"]) == ([ids[1]], [])
    assert [len(jobs) for jobs in PBS().find([f"n{number}" for number in range(6)]).values()] == [1, 1, 1, 1, 1, 0]


@pytest.mark.parametrize(
    ("pbs", "launch", "names"),
    [
        ({"dialect": "hydra"}, "mpiexec -n 4 -ppn 2", "PMI_RANK MPI_LOCALRANKID"),
        ({"dialect": "pals"}, "mpiexec -n 4 --ppn 2 --cpu-bind none", "PALS_RANKID PALS_LOCAL_RANKID"),
        ({"dialect": "ibrun"}, "ibrun -np 4", "PMI_RANK MPI_LOCALRANKID"),
        ({"dialect": "openmpi"}, "mpirun -np 4 --map-by ppr:2:node", "OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_LOCAL_RANK"),
    ],
    indirect=["pbs"],
    ids=["hydra", "pals", "ibrun", "openmpi"],
)
def test_each_dialect_names_its_processes(pbs: PbsStandIn, tmp_path: Path, launch: str, names: str) -> None:
    words = " ".join(f"${name}" for name in names.split())
    script = f"#!/bin/bash\nexport SEEN=yes\n{launch} sh -c 'echo $(uname -n) {words} ${{SEEN-no}}'\n"
    options = ["-l", "select=2:ncpus=2", "-l", "place=scatter", "-j", "oe", "-o", f"{tmp_path}/out"]
    assert waited(qsub(tmp_path, script, *options)).state is JobState.done
    bare = "no" if launch.startswith("mpirun") else "yes"  # Open MPI's remote processes get no environment
    said = sorted((tmp_path / "out").read_text().split("\n")[:-1])
    assert said == ["pnode1 0 0 yes", "pnode1 1 1 yes", f"pnode2 2 0 {bare}", f"pnode2 3 1 {bare}"]


def test_a_launcher_refuses_the_options_of_another(pbs: PbsStandIn, tmp_path: Path) -> None:
    assert waited(qsub(tmp_path, "#!/bin/bash\nmpiexec -n 1 --map-by core true\n")).exit_code == 2


@pytest.mark.parametrize("pbs", [{"history": False}], indirect=True)
def test_a_server_without_history(pbs: PbsStandIn, tmp_path: Path) -> None:
    running = qsub(tmp_path, "#!/bin/bash\nsleep 60\n", "-N", "r")
    ended = qsub(tmp_path, "#!/bin/bash\nexit 0\n", "-N", "e")
    waited(running, JobState.running)
    info = waited(ended, JobState.unknown)
    assert "keeps no history" in (info.explanation or "")
    assert [job.job_id for job in PBS().find(["r"])["r"]] == [running]
    PBS().cancel(running)
    PBS().cancel(ended)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"queue": "debug", "directives": ("-l nosuch=1",)}, "Unknown resource: nosuch"),
        ({"queue": "main", "directives": ("-l place=nosuch",)}, "Illegal attribute or resource value"),
    ],
)
def test_refusals_carry_the_schedulers_words(
    pbs: PbsStandIn, tmp_path: Path, fields: dict[str, Any], words: str
) -> None:
    case = "polaris" if fields["queue"] == "debug" else "derecho"
    with pytest.raises(SubmissionError, match=f"qsub refused the job: qsub: {words}"):
        submitted(plan(tmp_path, case, "bad-run", **fields))


def test_a_command_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = plan(tmp_path, "polaris", "lost-run")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(commands.NotStartedError, match="the command qsub is not on PATH"):
        submitted(made)
    with pytest.raises(SchedulerError, match="the command qstat is not on PATH"):
        PBS().query(["1"])


REFUSED = sorted(path.name for path in DATA.glob("err_*.txt") if path.name not in {"err_unknown_job.txt"})


@pytest.mark.parametrize("name", REFUSED)
def test_the_stand_in_refuses_as_recorded(pbs: PbsStandIn, tmp_path: Path, name: str) -> None:
    recorded = (DATA / name).read_text()
    line, *said = recorded.splitlines()
    words = line.removeprefix("$ ").split()
    if name == "err_name_digit.txt":
        words = ["qsub", "-N", "1 bad name", "ok.sh"]
    if name == "err_account_long.txt":
        words = ["qsub", "-A", "", "ok.sh"]
    (tmp_path / "ok.sh").write_text("#!/bin/bash\nexit 0\n")
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert f"[exit {done.returncode}]" == said[-1]
    assert re.sub(r"\d+\.pbsserver", "N", (done.stderr or done.stdout).splitlines()[0]) == re.sub(
        r"\d+\.pbsserver", "N", said[0]
    )


def test_the_environment_is_as_recorded(pbs: PbsStandIn, tmp_path: Path) -> None:
    script = "#!/bin/bash\ncat $PBS_NODEFILE\nenv | grep -E '^(PBS|NCPUS)' | sort\npwd\n"
    options = ["-l", "select=2:ncpus=2:mpiprocs=2:ngpus=1", "-l", "place=scatter", "-j", "oe", "-o", f"{tmp_path}/out"]
    waited(qsub(tmp_path, script, "-N", "env", *options))
    recorded, ours = ((file.read_text().splitlines()) for file in (DATA / "env.out", tmp_path / "out"))
    assert ours[:4] == recorded[:4] == ["pnode1", "pnode1", "pnode2", "pnode2"]
    names = [{line.partition("=")[0] for line in lines[4:-1]} for lines in (recorded, ours)]
    assert names[0] - names[1] == {"PBS_O_INTERACTIVE_AUTH_METHOD", "PBS_O_INTERACTIVE_ENCRYPT_METHOD"}
    assert names[1] - names[0] == {"PBS_CONF_FILE"}
    assert ours[-1] == str(pbs.folder / "home")
