"""Jobs of a machine without a scheduler."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from maple_parsl.errors import SchedulerError, SubmissionError
from maple_parsl.plan import Plan, RunPlace
from maple_parsl.schedulers import JobInfo, JobState, scheduler
from maple_parsl.schedulers.local import Local
from tests import cases

pytestmark = pytest.mark.timeout(60)
PRINT = "import os; print('rank', os.environ['RANK'], os.environ.get('SLURM_JOB_ID'), flush=True)\n"
SLEEP = "import time; print('up', flush=True); time.sleep(60)\n"


def plan(folder: Path, name: str, program: str) -> Plan:
    (folder / "program.py").write_text(program)
    python = {"python": sys.executable}
    made = cases.plan("local", model=None, script=str(folder / "program.py"), template="plain", environment=python)
    (folder / name).mkdir()
    return made.at(RunPlace(run_id=name, run_dir=str(folder / name), work_dir=str(folder)))


@pytest.fixture
def local(tmp_path: Path) -> Local:
    return Local(tmp_path / "registry", grace=2)


def waited(local: Local, job_id: str, *states: JobState) -> JobInfo:
    end = time.monotonic() + 20
    wanted = states or tuple(state for state in JobState if state.ended)
    while (info := local.query([job_id])[job_id]).state not in wanted:
        assert time.monotonic() < end, info
        time.sleep(0.05)
    return info


def wait_for_text(file: Path, text: str) -> None:
    end = time.monotonic() + 20
    while not file.exists() or text not in file.read_text():
        assert time.monotonic() < end, file.read_text() if file.exists() else "no file"
        time.sleep(0.05)


def test_a_run_to_its_end(local: Local, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    made = plan(tmp_path, "good-run", PRINT)
    job_id = local.submit(made, tmp_path / "good-run" / "script.sh")
    info = waited(local, job_id)
    log = (tmp_path / "good-run" / "log.txt").read_text()
    assert (info.state, info.exit_code, info.name) == (JobState.done, 0, "maple-good-run"), log
    assert sorted(line for line in log.splitlines() if line.startswith("rank")) == ["rank 0 None", "rank 1 None"]
    assert (tmp_path / "good-run" / "claim").readlink() == Path(job_id)
    assert (tmp_path / "good-run" / "script.sh").read_text() == made.script
    assert [found.job_id for found in local.find(["maple-good-run", "maple-good"])["maple-good-run"]] == [job_id]
    assert local.find(["maple-good"]) == {"maple-good": []}


def test_a_failure_keeps_its_code(local: Local, tmp_path: Path) -> None:
    made = plan(tmp_path, "bad-run", "import os, sys; sys.exit(9 if os.environ['RANK'] == '1' else 0)\n")
    info = waited(local, local.submit(made, tmp_path / "bad-run" / "script.sh"))
    assert (info.state, info.exit_code) == (JobState.failed, 9)


def test_cancel_ends_every_process(local: Local, tmp_path: Path) -> None:
    stubborn = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\n"
    made = plan(tmp_path, "cancel-run", stubborn + "time.sleep(60)\n")
    job_id = local.submit(made, tmp_path / "cancel-run" / "script.sh")
    wait_for_text(tmp_path / "cancel-run" / "log.txt", "up\nup")
    group = int(job_id.split("-")[1])
    local.cancel(job_id)
    info = waited(local, job_id)
    assert info.state is JobState.cancelled
    end = time.monotonic() + 5
    while members(group):
        assert time.monotonic() < end
        time.sleep(0.05)
    local.cancel(job_id)


def test_a_job_cancelled_before_its_program_started_is_cancelled(local: Local, tmp_path: Path) -> None:
    script = tmp_path / "early.sh"
    script.write_text("sleep 60\n")
    job_id = local.start(script, "maple-early", str(tmp_path))
    local.cancel(job_id)
    assert waited(local, job_id).state is JobState.cancelled


def members(group: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[2] == str(group) and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def test_a_killed_job_is_no_success(local: Local, tmp_path: Path) -> None:
    made = plan(tmp_path, "killed-run", SLEEP)
    job_id = local.submit(made, tmp_path / "killed-run" / "script.sh")
    wait_for_text(tmp_path / "killed-run" / "log.txt", "up")
    os.killpg(int(job_id.split("-")[1]), signal.SIGKILL)
    info = waited(local, job_id)
    assert (info.state, info.exit_code) == (JobState.failed, None)
    assert "left no exit record" in (info.explanation or "")


def test_a_job_outlives_its_submitter_and_is_found_by_another(local: Local, tmp_path: Path) -> None:
    made = plan(tmp_path, "outlive-run", SLEEP)
    (tmp_path / "plan.json").write_text(made.to_json())
    code = (
        "import os, signal; from pathlib import Path; from maple_parsl.plan import Plan\n"
        "from maple_parsl.schedulers.local import Local\n"
        f"plan = Plan.from_json(Path({str(tmp_path / 'plan.json')!r}).read_text())\n"
        f"Local(Path({str(tmp_path / 'registry')!r})).submit(plan, Path({str(tmp_path / 'outlive-run/script.sh')!r}))\n"
        "os.killpg(0, signal.SIGKILL)\n"
    )
    root = {"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": os.environ["PATH"]}
    done = subprocess.run([sys.executable, "-c", code], env=root, start_new_session=True, check=False)
    assert done.returncode == -9
    (found,) = local.find(["maple-outlive-run"])["maple-outlive-run"]
    assert found.state is JobState.running
    started = tmp_path / "outlive-run" / "started.json"
    wait_for_text(started, "job_id")
    assert json.loads(started.read_text())["job_id"] == found.job_id
    local.cancel(found.job_id)
    assert waited(local, found.job_id).state is JobState.cancelled


def test_a_reused_pid_is_another_job(local: Local, tmp_path: Path) -> None:
    info = local.query([f"local-{os.getpid()}-1"])[f"local-{os.getpid()}-1"]
    assert info.state is JobState.unknown
    local.cancel(f"local-{os.getpid()}-1")
    assert local.query(["12"])["12"].state is JobState.unknown
    with pytest.raises(SchedulerError, match="not the id of a job on this machine"):
        local.cancel("12")


@pytest.mark.parametrize("name", ["a;touch X", "a b", 'a"b', "a%b", "$(touch X)", "a`b`"])
def test_any_folder_will_do(local: Local, tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    info = waited(local, local.submit(plan(folder, "odd-run", PRINT), folder / "odd-run" / "script.sh"))
    assert info.state is JobState.done, (folder / "odd-run" / "log.txt").read_text()
    assert sorted(path.name for path in folder.iterdir()) == ["odd-run", "program.py"]


def test_another_script_or_an_open_registry_is_refused(local: Local, tmp_path: Path) -> None:
    made = plan(tmp_path, "other-run", PRINT)
    script = tmp_path / "other-run" / "script.sh"
    script.write_text("another\n")
    with pytest.raises(SubmissionError, match="not the script of this plan"):
        local.submit(made, script)
    script.unlink()
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(SubmissionError, match="only you can write to"):
        Local(tmp_path / "open").submit(made, script)


def test_the_parsl_provider_of_this_machine(tmp_path: Path) -> None:
    made = plan(tmp_path, "parsl-run", PRINT)
    provider = made.provider()
    job_id = provider.submit(":", 1, job_name=made.job_name)
    end = time.monotonic() + 20
    while not (status := provider.status([job_id])[0]).terminal:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert (status.state.name, status.exit_code) == ("COMPLETED", 0)
    assert scheduler("none").query([job_id])[job_id].state is JobState.done


@pytest.mark.parametrize("module", ["maple_parsl", "maple_parsl.plan", "maple_parsl.schedulers", "maple_parsl.lease"])
def test_parsl_is_imported_only_when_it_is_needed(module: str) -> None:
    code = f"import sys, {module}; sys.exit('parsl' in sys.modules)"
    root = {"PYTHONPATH": str(Path(__file__).parents[2])}
    assert subprocess.run([sys.executable, "-c", code], env=root, check=False).returncode == 0
