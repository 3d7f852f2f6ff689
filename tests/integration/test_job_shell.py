"""The shell that runs inside a job, under the shells it meets: dash and bash. No Maple on its path."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

JOB = Path(__file__).parents[2] / "maple_parsl" / "job"
CLEAN = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}


def task_env(run: Path, **extra: str) -> dict[str, str]:
    (run / "attempt").mkdir(exist_ok=True)
    return {
        **CLEAN,
        "MAPLE_ATTEMPT_DIR": str(run / "attempt"),
        "MAPLE_RANK_VARS": "FIRST_RANK SECOND_RANK",
        "MAPLE_LOCAL_VARS": "LOCAL_VAR",
        "MAPLE_SIZE_VARS": "SIZE_VAR",
        "MAPLE_NODE_VARS": "NODE_VAR",
        "MAPLE_TASKS": "8",
        "MAPLE_LOCAL_SIZE": "4",
        "MAPLE_ONE_DEVICE": "0",
        "MAPLE_VISIBLE_NAME": "",
        "MAPLE_VISIBLE_DEVICES": "",
        **extra,
    }


@pytest.fixture(params=["dash", "bash", "bash --posix"])
def shell(request: pytest.FixtureRequest) -> list[str]:
    return str(request.param).split()


def run_task(shell: list[str], env: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*shell, str(JOB / "task.sh"), *command], env=env, capture_output=True, text=True, timeout=20, check=False
    )


def printed(name: str) -> tuple[str, ...]:
    return ("sh", "-c", f'printf %s "${{{name}-unset}}"')


@pytest.mark.parametrize(
    "launcher,name,expected",
    [
        ({"FIRST_RANK": "5", "LOCAL_VAR": "1"}, "RANK", "5"),
        ({"SECOND_RANK": "6", "LOCAL_VAR": "2"}, "RANK", "6"),
        ({"FIRST_RANK": "5", "LOCAL_VAR": "1"}, "WORLD_SIZE", "8"),
        ({"FIRST_RANK": "5", "LOCAL_VAR": "1"}, "LOCAL_RANK", "1"),
        ({"FIRST_RANK": "5"}, "LOCAL_RANK", "1"),
        ({"FIRST_RANK": "5"}, "NODE_RANK", "1"),
        ({"FIRST_RANK": "5", "LOCAL_VAR": "1", "MAPLE_ONE_DEVICE": "1"}, "LOCAL_RANK", "0"),
        ({"FIRST_RANK": "5", "LOCAL_VAR": "1", "MAPLE_ONE_DEVICE": "1"}, "MAPLE_LOCAL_RANK", "1"),
        (
            {"FIRST_RANK": "0", "MAPLE_VISIBLE_NAME": "CUDA_VISIBLE_DEVICES", "MAPLE_VISIBLE_DEVICES": "3,2,1,0"},
            "CUDA_VISIBLE_DEVICES",
            "3,2,1,0",
        ),
    ],
)
def test_rank_variables(tmp_path: Path, shell: list[str], launcher: dict[str, str], name: str, expected: str) -> None:
    done = run_task(shell, task_env(tmp_path, **launcher), "device", *printed(name))
    assert (done.returncode, done.stdout) == (0, expected)


def test_node_mode_takes_the_node_variable_then_the_rank(tmp_path: Path, shell: list[str]) -> None:
    env = task_env(tmp_path, FIRST_RANK="1", MAPLE_TASKS="2", MAPLE_LOCAL_SIZE="1")
    assert run_task(shell, env, "node", *printed("NODE_RANK")).stdout == "1"
    assert run_task(shell, {**env, "NODE_VAR": "7"}, "node", *printed("NODE_RANK")).stdout == "7"
    assert run_task(shell, env, "node", *printed("RANK")).stdout == "unset"


def test_no_launcher_and_wrong_world_are_refused(tmp_path: Path, shell: list[str]) -> None:
    alone = run_task(shell, task_env(tmp_path), "device", "true")
    assert alone.returncode == 78
    assert "set none of: FIRST_RANK SECOND_RANK" in alone.stderr
    split = run_task(shell, task_env(tmp_path, FIRST_RANK="0", SIZE_VAR="1"), "device", "true")
    assert split.returncode == 78
    assert "sees 1 processes where the launch has 8" in split.stderr


def test_first_failure_is_kept_with_its_code(tmp_path: Path, shell: list[str]) -> None:
    for rank, code in ((3, 7), (2, 9)):
        env = task_env(tmp_path, FIRST_RANK=str(rank))
        assert run_task(shell, env, "device", "sh", "-c", f"exit {code}").returncode == code
    record = json.loads((tmp_path / "attempt" / "failure.json").read_text())
    assert (record["rank"], record["code"], record["local_rank"], record["host"]) == (3, 7, 3, os.uname().nodename)


def test_arguments_arrive_untouched(tmp_path: Path, shell: list[str]) -> None:
    words = ["a b", "it's", "$(touch x)", "*", "", "ü", 'q"', "--x=`id`"]
    done = run_task(
        shell,
        task_env(tmp_path, FIRST_RANK="0"),
        "device",
        sys.executable,
        "-c",
        "import sys; print(sys.argv[1:])",
        *words,
    )
    assert done.stdout.strip() == repr(words)


HANDLER = (
    "import signal,sys,time\n"
    "hits=[]\n"
    "signal.signal(signal.SIGUSR1, lambda *a: hits.append(1))\n"
    "print('up', flush=True)\n"
    "end=time.time()+10\n"
    "while not hits and time.time()<end: time.sleep(.05)\n"
    "sys.exit(5 if hits else 6)\n"
)


def start(shell: list[str], env: dict[str, str], *command: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [*shell, str(JOB / "task.sh"), "device", *command], env=env, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


def test_usr1_reaches_a_program_that_catches_it(tmp_path: Path, shell: list[str]) -> None:
    with start(shell, task_env(tmp_path, FIRST_RANK="0"), sys.executable, "-c", HANDLER) as process:
        process.send_signal(signal.SIGUSR1)
        assert process.wait(15) == 5


def test_usr1_reaches_a_grandchild_and_spares_what_would_die_of_it(tmp_path: Path, shell: list[str]) -> None:
    # sh does not catch USR1 and would be killed by it; the Python it started does.
    script = tmp_path / "handler.py"
    script.write_text(HANDLER)
    with start(shell, task_env(tmp_path, FIRST_RANK="0"), "sh", "-c", f"{sys.executable} {script}; exit $?") as process:
        process.send_signal(signal.SIGUSR1)
        assert process.wait(15) == 5


def test_usr1_does_not_end_a_program_that_ignores_it(tmp_path: Path, shell: list[str]) -> None:
    with start(shell, task_env(tmp_path, FIRST_RANK="0"), "sh", "-c", "echo up; sleep 1; exit 4") as process:
        for _ in range(5):
            process.send_signal(signal.SIGUSR1)
            time.sleep(0.05)
        assert process.wait(15) == 4


def test_term_ends_the_program_and_is_no_failure_of_its_own(tmp_path: Path, shell: list[str]) -> None:
    with start(shell, task_env(tmp_path, FIRST_RANK="0"), "sh", "-c", "echo up; exec sleep 30") as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 143
    assert not (tmp_path / "attempt" / "failure.json").exists()


def test_a_limit_file_stands_in_for_the_signal(tmp_path: Path, shell: list[str]) -> None:
    env = task_env(tmp_path, FIRST_RANK="0", MAPLE_POLL_LIMIT="1")
    with start(shell, env, sys.executable, "-c", HANDLER) as process:
        (tmp_path / "attempt" / "limit").touch()
        assert process.wait(15) == 5


BATCH = """
MAPLE_JOB_ID={job} MAPLE_RUN_DIR={run} MAPLE_HOSTS=n1,n2 MAPLE_REQUEUE=0 MAPLE_LEAD=0 MAPLE_TIMER={timer}
MAPLE_FORWARD_USR1=1
. {batch}
maple_claim
{body}
"""


def batch(run: Path, body: str, job: str = "11", timer: int = 0) -> list[str]:
    return ["bash", "-c", BATCH.format(job=job, run=run, batch=JOB / "batch.sh", body=body, timer=timer)]


def call(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=CLEAN, capture_output=True, text=True, timeout=30, check=False)


def exit_record(run: Path) -> dict[str, Any]:
    return dict(json.loads((run / "exit.json").read_text()))


def test_success_and_failure_records(tmp_path: Path) -> None:
    assert call(batch(tmp_path / "a", "maple_launch true; maple_finish")).returncode == 0
    record = exit_record(tmp_path / "a")
    assert (record["code"], record["reason"], record["hosts"]) == (0, "done", "n1,n2")
    assert call(batch(tmp_path / "b", "maple_launch sh -c 'exit 3'; maple_finish")).returncode == 3
    assert exit_record(tmp_path / "b")["reason"] == "failed"


def test_the_first_failing_rank_gives_the_code_although_the_launcher_says_another(tmp_path: Path) -> None:
    body = (
        'fake() { printf \'{"rank":5,"host":"n2","code":7,"at":1}\\n\' >"$MAPLE_ATTEMPT_DIR/failure.json"\n'
        "return 143; }\n"
        "maple_launch fake; maple_finish"
    )
    assert call(batch(tmp_path, body)).returncode == 7
    record = exit_record(tmp_path)
    assert record["code"] == 7
    assert record["first_failure"] == {"rank": 5, "host": "n2", "code": 7, "at": 1}


def test_a_second_job_of_the_same_run_ends_without_running(tmp_path: Path) -> None:
    assert call(batch(tmp_path, "touch $MAPLE_RUN_DIR/ran.11; maple_launch true; maple_finish")).returncode == 0
    other = call(batch(tmp_path, "touch $MAPLE_RUN_DIR/ran.12; maple_launch true; maple_finish", job="12"))
    assert other.returncode == 0
    assert "belongs to job 11" in other.stderr
    assert not (tmp_path / "ran.12").exists()
    assert exit_record(tmp_path)["job_id"] == "11"


def test_the_same_job_may_claim_again_and_is_told_to_resume(tmp_path: Path) -> None:
    say = 'echo "$MAPLE_ATTEMPT $MAPLE_RESUME"; maple_launch true; maple_finish'
    assert call(batch(tmp_path, say)).stdout == "1 0\n"
    assert call(batch(tmp_path, say)).stdout == "2 1\n"
    assert json.loads((tmp_path / "attempts" / "1" / "exit.json").read_text())["attempt"] == 1


def test_a_hundred_claims_at_once_have_one_owner(tmp_path: Path) -> None:
    body = 'echo x >>"$MAPLE_RUN_DIR/ran"; maple_launch true; maple_finish'
    processes = [subprocess.Popen(batch(tmp_path, body, job=str(i)), env=CLEAN, stderr=-3) for i in range(40)]
    assert {process.wait(60) for process in processes} == {0}
    assert (tmp_path / "ran").read_text() == "x\n"


def test_term_leaves_a_record_at_once_and_stops_the_launcher(tmp_path: Path) -> None:
    process = subprocess.Popen(batch(tmp_path, "maple_launch sleep 60; maple_finish"), env=CLEAN, stderr=-3)
    deadline = time.time() + 10
    while not (tmp_path / "started.json").exists() and time.time() < deadline:
        time.sleep(0.02)
    time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 143
    assert exit_record(tmp_path)["reason"] == "terminated"


def test_term_during_set_up_leaves_a_record_too(tmp_path: Path) -> None:
    body = "sleep 1.5; maple_launch touch $MAPLE_RUN_DIR/ran; maple_finish"
    process = subprocess.Popen(batch(tmp_path, body), env=CLEAN, stderr=-3)
    deadline = time.time() + 10
    while not (tmp_path / "started.json").exists() and time.time() < deadline:
        time.sleep(0.02)
    time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 143
    assert exit_record(tmp_path)["reason"] == "terminated"
    assert not (tmp_path / "ran").exists()


def test_the_scripts_own_timer_tells_the_processes(tmp_path: Path) -> None:
    handler = tmp_path / "handler.py"
    handler.write_text(HANDLER)
    run = tmp_path / "run"
    done = call(batch(run, f"maple_launch {sys.executable} {handler}; maple_finish", timer=1))
    assert done.returncode == 5
    assert (run / "attempts" / "1" / "limit").exists()


def test_a_failed_setup_line_is_named(tmp_path: Path) -> None:
    done = call(batch(tmp_path, "false; maple_check $? 'module load nothing'; maple_launch true; maple_finish"))
    assert done.returncode == 1
    assert "module load nothing" in done.stderr
    assert exit_record(tmp_path)["reason"] == "setup"


@pytest.mark.parametrize("job", ["1", "12345678", "local-77", "12_3", "12[3].server", "99.host01", "0099"])
def test_ports_stay_below_the_kernels_own(tmp_path: Path, job: str) -> None:
    done = call(batch(tmp_path, "maple_port; echo $MASTER_PORT", job=f"'{job}'"))
    assert 20000 <= int(done.stdout) < 32768, done.stderr


def test_elements_of_an_array_get_different_ports(tmp_path: Path) -> None:
    ports = {call(batch(tmp_path / str(i), "maple_port; echo $MASTER_PORT", job=f"500_{i}")).stdout for i in range(4)}
    assert len(ports) == 4


def test_an_unwritable_run_directory_is_said(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    done = call(batch(blocked / "run", "maple_launch true; maple_finish"))
    assert done.returncode == 73
    assert "cannot write" in done.stderr


@pytest.mark.parametrize(
    "line,code",
    [
        ("exit 0", 1),
        ("exit 9", 9),
        ("set -e; false", 1),
        ("set -u; echo $NOT_SET", 127),
        ("cat <<X", 1),
        ("if true", 2),
    ],
)
def test_a_line_that_ends_the_script_leaves_a_record(tmp_path: Path, line: str, code: int) -> None:
    done = call(batch(tmp_path, f"{line}\nmaple_launch true\nmaple_finish"))
    assert done.returncode == code, done.stderr
    assert (exit_record(tmp_path)["code"], exit_record(tmp_path)["reason"]) == (code, "setup")
    assert "set-up line" in done.stderr


def test_a_hang_up_is_an_end_from_outside(tmp_path: Path) -> None:
    body = f"maple_launch sh -c 'echo up >{tmp_path}/up; exec sleep 30'\nmaple_finish"
    with subprocess.Popen(batch(tmp_path, body), env=CLEAN) as process:
        while not (tmp_path / "up").exists():
            time.sleep(0.05)
        process.send_signal(signal.SIGHUP)
        assert process.wait(15) == 143
    assert exit_record(tmp_path)["reason"] == "terminated"


def test_the_walltime_signal_before_the_launch_waits_for_it(tmp_path: Path) -> None:
    program = tmp_path / "handler.py"
    program.write_text(HANDLER)
    body = f"kill -s USR1 $$\nmaple_launch sh -c 'sleep 0.5; exec {sys.executable} {program}'\nmaple_finish"
    done = call(batch(tmp_path, body))
    assert (tmp_path / "attempts" / "1" / "limit").exists(), done.stderr


LOCAL = f". {JOB / 'local.sh'}\n"


@pytest.mark.parametrize(
    "count,program,code",
    [
        (1, "exit 127", 127),
        (1, "/no/such/program", 127),
        (3, "exit 0", 0),
        (2, "[ $MAPLE_LOCAL_INDEX = 1 ] && exit 7; exec sleep 20", 7),
        (4, "sleep 0.$MAPLE_LOCAL_INDEX; exit 127", 127),
        (1, "kill -9 $$", 137),
        (2, "exit 255", 255),
    ],
)
def test_the_local_launcher_gives_the_programs_code(count: int, program: str, code: int) -> None:
    done = call(["bash", "-c", LOCAL + 'maple_local "$1" sh -c "$2"', "x", str(count), program])
    assert done.returncode == code


PASS = '{"verdict": "pass", "ranks": 2, "findings": []}'
STOP = '{"verdict":"stop","findings":[{"class":"MPI_PMI","severity":"error","message":"no rank"}]}'


@pytest.mark.parametrize(
    "action,verdict,code,reason,trained",
    [
        ("stop", PASS, 0, "done", True),
        ("stop", STOP, 76, "preflight", False),
        ("warn", STOP, 0, "done", True),
        ("stop", "", 0, "done", True),
        ("only", PASS, 0, "done", False),
        ("only", STOP, 76, "preflight", False),
        ("only", "", 76, "preflight", False),
    ],
)
def test_a_preflight_decides(tmp_path: Path, action: str, verdict: str, code: int, reason: str, trained: bool) -> None:
    run = tmp_path / "run"
    says = f"echo '{verdict}' >$MAPLE_ATTEMPT_DIR/verdict.json; " if verdict else ""
    trial = shlex.quote(f"{says}mkdir $MAPLE_ATTEMPT_DIR/failed; exit 5")
    body = f"maple_preflight {action} 30 bash -c {trial}; maple_launch touch {tmp_path}/trained; maple_finish"
    done = call(batch(run, body))
    assert done.returncode == code, done.stderr
    record = exit_record(run)
    assert record["reason"] == reason
    assert record["preflight"] == (json.loads(verdict) if verdict else record["preflight"])
    assert (tmp_path / "trained").exists() is trained
    assert not (run / "attempts" / "1" / "failed").exists()


def test_a_preflight_that_hangs_is_ended_and_the_training_starts(tmp_path: Path) -> None:
    done = call(batch(tmp_path, "maple_preflight stop 1 sleep 50; maple_launch true; maple_finish"))
    assert done.returncode == 0, done.stderr
    record = exit_record(tmp_path)
    assert record["reason"] == "done"
    assert record["preflight"]["verdict"] == "none"


def test_term_during_the_preflight_ends_the_job(tmp_path: Path) -> None:
    trial = f"maple_preflight stop 60 sh -c 'echo up >{tmp_path}/up; exec sleep 30'"
    body = f"{trial}\nmaple_launch touch {tmp_path}/trained\nmaple_finish"
    with subprocess.Popen(batch(tmp_path / "run", body), env=CLEAN) as process:
        while not (tmp_path / "up").exists():
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 143
    assert exit_record(tmp_path / "run")["reason"] == "terminated"
    assert not (tmp_path / "trained").exists()
