"""What a site elsewhere costs, measured against the same thing without the way there. Each figure is printed."""

from __future__ import annotations

import json
import os
import shutil
import sys
from statistics import median
from typing import Any

import pytest

from tests import tiny_model
from tests.integration.globus.client import Client

SITE = "slurm-stand"
SUBMIT = """
import json, sys, time
import maple_parsl as maple
from maple_parsl.transport import connect
from maple_parsl.transport.via import checked
endpoint, count = json.loads(sys.argv[1])
trips = []
if endpoint:
    for _ in range(4):
        began = time.monotonic()
        connect(checked("globus", endpoint)).call("where", root="~/runs")
        trips.append(time.monotonic() - began)
took = []
for _ in range(count):
    began = time.time()
    run = maple.run(script="job.py", site="slurm-stand", queue="gpu", nodes=1, gpus_per_node=1, walltime="5m", yes=True,
                    template="plain", preflight="off", python="python3", **json.loads(sys.argv[2]))
    took.append(run.result().started - began)
took.sort()
print(json.dumps([took[len(took) // 2], sorted(trips)[len(trips) // 2] if trips else 0.0]))
"""
STATUS = """
import json, time
import maple_parsl as maple
began = time.monotonic()
states = [run.status().state.value for run in maple.runs()]
print(json.dumps([len(states), sorted(set(states)), time.monotonic() - began]))
"""
INFER = """
import json, sys, time
from maple_parsl.fleet import Fleet, Member, worker_source
from maple_parsl.transport.base import opened, question
from maple_parsl.transport.globus import Globus
endpoint, model, count = json.loads(sys.argv[1])
schema = {"type": "object", "properties": {"text": {"type": "string", "maxLength": 60}}, "required": ["text"]}
prompts = [[{"role": "user", "content": f"prompt {n}"}] for n in range(count)]
fleet = Fleet([Member("one", endpoint, model)], most=64)
way = Globus(endpoint)
fleet.answer(prompts, schema, 120)  # loads the model
asked = {"model": model, "prompts": prompts, "schema": schema, "most": 64, "seconds": 60}
rows = []
for _ in range(3):
    began = time.monotonic()
    fleet.answer(prompts, schema, 120)
    through = time.monotonic() - began
    said = opened(way.run(worker_source(), "entry", (question("answer", asked),), 120), "answer")
    began = time.monotonic()
    fleet.probe("one")
    rows.append([through, said["seconds"], time.monotonic() - began, said["loads"]])
print(json.dumps(rows))
"""


def last(text: str) -> Any:
    return json.loads(text.splitlines()[-1])


def test_from_submission_to_start_is_at_most_three_round_trips_longer(
    client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    client.job()
    stand = client.stand
    asked = json.dumps([stand.endpoint_id(SITE), 3])
    away, trip = last(client.python(SUBMIT, asked, "{}"))
    place = stand.places[SITE]
    home = stand.home(SITE)
    shutil.copy(client.work / "job.py", home / "job.py")
    env = {
        **{name: client.env[name] for name in ("MAPLE_SITE_PATH", "PYTHONPATH")},
        "HOME": str(home), "MAPLE_HOME": str(home / "maple"), "MAPLE_CONFIG_HOME": str(home / "none"),
        "MAPLE_SITE": SITE, "PATH": f"{home}/bin:{os.environ['PATH']}", "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    words = [sys.executable, "-c", SUBMIT, json.dumps([None, 3]), json.dumps({"run_root": str(home / "runs")})]
    here, _ = last(stand.bed.run(words, cwd=home, env=env, timeout=300).stdout)
    assert place.slurm
    with capsys.disabled():
        print(f"\nsubmission to start: {here:.2f} s at the site, {away:.2f} s from outside; a round trip {trip:.2f} s")
        print("(medians of three; the job notes its start in whole seconds)")
    assert away <= here + 3 * trip + 1.0


def test_two_hundred_runs_are_told_in_one_call(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(client.json(*client.job(600), "--no-wait")["run"])
    try:
        client.until(run, "running")
        store, stand = client.folder / "maple/runs", client.stand
        root = stand.home(SITE) / "runs"
        for number in range(199):
            name = f"{run[:-4]}{number:04x}"
            shutil.copytree(store / run, store / name, symlinks=True)
            for path in (store / name).glob("*.json"):
                path.write_text(path.read_text().replace(run, name))
            shutil.copytree(root / run, root / name, symlinks=True)
        before = client.submits(SITE)
        count, states, seconds = last(client.python(STATUS))
        calls = client.submits(SITE) - before
        with capsys.disabled():
            print(f"\nstatus of {count} runs: {calls} call, {seconds:.2f} s, all {', '.join(states)}")
        assert (count, states, calls) == (200, ["running"], 1)
    finally:
        client.json("cancel", run)


def test_a_warm_answer_costs_the_generation_and_one_round_trip(
    client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    stand = client.stand
    model = stand.prefix / "model"
    if not model.exists():
        tiny_model.write(model)
    rows = last(client.python(INFER, json.dumps([stand.endpoint_id("intel-stand"), str(model), 8])))
    through, inside, trip = (median(row[column] for row in rows) for column in range(3))
    ratio = through / (inside + trip)
    with capsys.disabled():
        print(f"\n8 answers, warm: {through:.2f} s through the fleet, {inside:.2f} s in the worker, a round trip")
        print(f"{trip:.2f} s: {ratio:.2f} times their sum")
    assert {row[3] for row in rows} == {1}
    assert through <= 1.15 * inside + 2 * trip
