"""Workers that die, answers that are too large, blocks that do not start: told in time, and the next call works."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

from tests.integration.globus.client import Client
from tests.testbeds.globus import Place

SITE = "nvidia-stand"
WORK = """
import json, os, time

def entry(text):
    asked = json.loads(text)
    time.sleep(asked.get("sleep", 0))
    return json.dumps({"ok": True, "value": {"pid": os.getpid(), "pad": "x" * asked.get("pad", 0)}})
"""
CALL = """
import json, sys, time
from maple_parsl.errors import TransportError
from maple_parsl.transport.base import opened
from maple_parsl.transport.globus import Globus
source, endpoint, asked, deadline, tries = json.loads(sys.argv[1])
way = Globus(endpoint)
for _ in range(tries):
    began = time.monotonic()
    print("asked", flush=True)
    try:
        said = opened(way.run(source, "entry", (json.dumps(asked),), deadline), "work")
        said = {"pid": said["pid"], "length": len(said["pad"])}
    except TransportError as error:
        said = {"error": str(error), "certain": error.certain}
    print(json.dumps({**said, "seconds": time.monotonic() - began}), flush=True)
    if "error" not in said:
        break
    time.sleep(1)
"""


def words(endpoint: str, asked: dict[str, Any], deadline: float, tries: int = 1) -> str:
    return json.dumps([WORK, endpoint, asked, deadline, tries])


def last(text: str) -> dict[str, Any]:
    return dict(json.loads([row for row in text.splitlines() if row.startswith("{")][-1]))


def call(client: Client, asked: dict[str, Any], deadline: float = 90, tries: int = 1, site: str = SITE) -> Any:
    return last(client.python(CALL, words(client.stand.endpoint_id(site), asked, deadline, tries), timeout=600))


def during(client: Client, asked: dict[str, Any], deadline: float) -> subprocess.Popen[str]:
    """A call under way."""
    argv = client.stand.outside([sys.executable, "-c", CALL, words(client.stand.endpoint_id(SITE), asked, deadline)])
    return subprocess.Popen(argv, cwd=client.work, env=client.env, stdout=subprocess.PIPE, text=True)


def test_a_worker_killed_during_a_call_is_told_and_the_next_call_has_another(client: Client) -> None:
    first = call(client, {}, tries=3)
    process = during(client, {"sleep": 60}, 90)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(4)
    client.stand.kill([first["pid"]])
    said = last(process.communicate(timeout=120)[0])
    assert "a worker there died during the call" in said["error"]
    assert said["certain"] is False
    assert said["seconds"] < 60
    assert call(client, {}, tries=4)["pid"] != first["pid"]


def test_a_worker_pool_killed_during_a_call_is_told_and_there_is_another(client: Client) -> None:
    first = call(client, {}, tries=3)
    process = during(client, {"sleep": 60}, 40)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(4)
    home = client.stand.home(SITE)
    pools = client.stand.processes(f"process_worker_pool.*{home}")
    assert pools
    client.stand.kill(pools)
    said = last(process.communicate(timeout=120)[0])
    assert "its workers are gone" in said["error"] or "no answer" in said["error"]
    assert said["certain"] is False
    assert said["seconds"] < 45
    assert call(client, {}, deadline=60, tries=5)["pid"] != first["pid"]


def test_an_answer_beyond_what_globus_compute_carries_is_told(client: Client) -> None:
    said = call(client, {"pad": 11 << 20})
    assert "larger than Globus Compute carries" in said["error"]
    assert said["seconds"] < 60
    assert call(client, {"pad": 1 << 20}, tries=2)["length"] == 1 << 20


def test_a_question_beyond_it_is_refused_here(client: Client) -> None:
    code = (
        "import sys\nfrom maple_parsl.errors import TransportError\nfrom maple_parsl.transport.globus import Globus\n"
        "try:\n    Globus(sys.argv[1]).call('stage', root='~/runs', contents={'a': 'x' * (8 << 20)})\n"
        "except TransportError as error:\n    print(error.certain, error)\n"
    )
    before = len(client.stand.calls())
    assert client.python(code, client.stand.endpoint_id(SITE)).startswith("True 8 MiB are too much")
    assert len(client.stand.calls()) == before


BAD = """
heartbeat_period: 5
engine:
  type: GlobusComputeEngine
  max_workers_per_node: 1
  provider: {type: LocalProvider, init_blocks: 1, min_blocks: 1, max_blocks: 1, worker_init: "exit 7"}
"""


def test_a_bad_worker_init_is_told_in_time(client: Client) -> None:
    stand, place = client.stand, Place("bad-init", "inference", template=BAD)
    stand.places[place.name] = place
    try:
        stand.configure(place)
        stand.start_endpoint(place.name)
        stand.wait_online(place.name)
        said = call(client, {}, site=place.name)
        assert "worker_init or a block failed there" in said["error"] or "its workers are gone" in said["error"]
        assert "7" in said["error"]
        assert said["seconds"] < 90
    finally:
        stand.end_endpoint(place.name)
        del stand.places[place.name]


RUN = """
import sys, time
ahead, real = float(sys.argv[1]), time.time
time.time = lambda: real() + ahead
import json
import maple_parsl as maple
run = maple.run(None, None, "slurm-stand", script="job.py", nodes=1, gpus_per_node=1, walltime="5m", yes=True)
outcome = run.result()
print(json.dumps({"state": outcome.state.value, "now": time.time(), **outcome.to_dict()}, default=str))
"""


def test_clocks_that_differ_by_an_hour_leave_times_in_order(client: Client) -> None:
    client.job(2)
    for ahead in (3600.0, -3600.0):
        began = time.time() + ahead
        said = last(client.python(RUN, str(ahead)))
        assert said["state"] == "done"
        assert began - 30 <= said["started"] <= said["ended"] <= said["now"] + 30, said
