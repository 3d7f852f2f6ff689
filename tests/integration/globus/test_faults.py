"""Faults on the way to a site: what is told is true, no job is lost or doubled, nothing hangs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.integration.globus.client import Client
from tests.testbeds.globus import Stand

SITE = "slurm-stand"
ASK = """
import json, sys, time
from maple_parsl.errors import TransportError
from maple_parsl.transport import connect
from maple_parsl.transport.via import checked
way = connect(checked("globus", sys.argv[1]))
for row in sys.stdin:
    began = time.monotonic()
    try:
        said = {"root": way.call("where", root="~/runs", deadline=float(row))["root"]}
    except TransportError as error:
        said = {"error": str(error), "certain": error.certain}
    print(json.dumps({**said, "seconds": time.monotonic() - began}), flush=True)
"""
Ask = Callable[[float], dict[str, Any]]


@pytest.fixture(scope="module")
def ask(stand: Stand, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """One process of a person outside, which asks the site where it is, again and again."""
    client = Client(stand, tmp_path_factory.mktemp("asker"))
    words = client.stand.outside([sys.executable, "-c", ASK, stand.endpoint_id(SITE)])
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, cwd=client.work, env=client.env, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def asked(deadline: float) -> dict[str, Any]:
            process.stdin.write(f"{deadline}\n")
            process.stdin.flush()
            return dict(json.loads(process.stdout.readline()))

        yield asked
        process.stdin.close()
        assert process.wait(60) == 0


@pytest.mark.parametrize(
    ("fault", "words", "certain"),
    [
        ({"status": 401, "count": 9}, "endpoints login", True),
        ({"status": 403, "count": 9}, "does not let you", True),
        ({"status": 413}, "larger than", True),
        ({"status": 422, "reason": "the block said no"}, "the block said no", True),
        ({"status": 429, "count": 99}, "too many requests", True),
        ({"status": 500, "count": 99}, "in trouble", False),
        ({"body": "<html>proxy</html>", "status": 200}, "endpoint", False),
        ({"hang": 60, "count": 9}, "no answer", False),
    ],
)
def test_a_fault_of_the_service_is_told_and_passes(
    stand: Stand, ask: Ask, fault: dict[str, object], words: str, certain: bool
) -> None:
    assert "root" in ask(90)
    stand.faults({"path": "/submit$", **fault})
    said = ask(12 if "hang" in fault else 45)
    assert words in str(said["error"])
    assert said["certain"] is certain
    assert float(str(said["seconds"])) < 60
    stand.faults()
    assert "root" in ask(90)


@pytest.mark.parametrize("moment", ["noted", "asked", "submitted"])
def test_a_client_killed_at_any_moment_leaves_one_job_or_none(client: Client, moment: str) -> None:
    before, limit = client.submits(SITE), time.monotonic() + 240
    come = {
        "noted": lambda: bool(client.runs()),
        "asked": lambda: (
            client.submits(SITE) >= before + 3
        ),  # where it goes, what is missing there, and the submission itself
        "submitted": lambda: any(client.jobs_of(run) for run in client.runs()),
    }[moment]
    process = client.popen(*client.job(), "--no-wait")
    while not come() and process.poll() is None:
        assert time.monotonic() < limit
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    runs = client.runs()
    assert runs
    for run in runs:
        status = client.until(run, "not_submitted", "pending", "running", "ending", "done")
        if status["state"] == "not_submitted":
            assert client.jobs_of(run) == []
            client.json("run", "--resubmit", run, "--no-wait")
        client.until(run, "done")
        assert len(client.jobs_of(run)) == 1


def test_the_endpoint_s_process_dies_while_a_run_goes_on(client: Client) -> None:
    run = str(client.json(*client.job(30), "--no-wait")["run"])
    client.until(run, "running")
    pids = client.stand.user_process(SITE)
    assert pids
    client.stand.kill(pids)
    assert client.until(run, "done")["state"] == "done"
    assert len(client.jobs_of(run)) == 1


def test_an_endpoint_that_is_offline_is_told_and_serves_when_it_is_back(client: Client) -> None:
    stand = client.stand
    run = str(client.json(*client.job(5), "--no-wait")["run"])
    stand.end_endpoint(SITE)
    try:
        stand.wait_offline(SITE)
        done = client.maple(*client.job())
        assert done.returncode == 6
        assert "offline" in done.stderr
        assert client.runs() == [run]
    finally:
        stand.start_endpoint(SITE)
        stand.wait_online(SITE)
    assert client.until(run, "done")["state"] == "done"


def test_two_clients_follow_one_run(client: Client) -> None:
    run = str(client.json(*client.job(5), "--no-wait")["run"])
    followers = [client.popen("logs", "--follow", run) for _ in range(2)]
    for follower in followers:
        out, err = follower.communicate(timeout=240)
        assert follower.returncode == 0, err
        assert "rank 0 here" in out
        assert "rank 1 here" in out
    assert client.until(run, "done")["state"] == "done"


def test_the_broker_is_restarted(client: Client) -> None:
    run = str(client.json(*client.job(20), "--no-wait")["run"])
    stand = client.stand
    stand.broker.kill()
    time.sleep(1)
    stand.broker.start()
    stand.broker.wait()
    assert client.until(run, "done", seconds=400)["state"] == "done"
    assert len(client.jobs_of(run)) == 1
