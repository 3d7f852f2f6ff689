"""Runs at a site elsewhere: a real SDK, a real endpoint, a real Slurm."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.integration.globus.client import Client


def test_a_run_elsewhere_is_followed_to_its_end_and_can_be_opened_again(client: Client) -> None:
    done = client.maple(*client.job(), "--follow")
    assert done.returncode == 0, done.stderr
    assert {"rank 0 here", "rank 1 here", "end"} <= set(done.stdout.split("\n"))
    (run,) = client.runs()
    assert f"{run}: done, code 0" in done.stdout
    assert len(client.jobs_of(run)) == 1
    # once more, by another process, from the records alone
    assert client.json("status", run)["state"] == "done"
    assert "rank 1 here" in client.maple("logs", run).stdout
    # nothing secret is kept
    secret = client.env["GLOBUS_COMPUTE_CLIENT_SECRET"]
    kept = [path for path in (client.folder / "maple").rglob("*") if path.is_file()]
    assert kept
    for path in kept:
        text = path.read_text(errors="replace")
        assert "Bearer" not in text
        assert "access_token" not in text
        assert f'"{secret}"' not in text


def test_a_failed_run_elsewhere_names_the_rank_and_is_diagnosed(client: Client) -> None:
    words = client.job()
    (client.work / "job.py").write_text("import os, no_such_module_here\n")
    done = client.maple(*words, "--wait")
    assert done.returncode == 10, done.stderr
    assert "failed first, with code 1" in done.stdout
    (run,) = client.runs()
    found = client.maple("diagnose", run)
    assert "no_such_module_here" in found.stdout
    assert client.maple("correct", run).returncode in (0, 1)  # a change, or an honest "cannot"; no fault of ours


def test_a_run_elsewhere_is_cancelled(client: Client) -> None:
    run = str(client.json(*client.job(60), "--no-wait")["run"])
    client.until(run, "running")
    client.json("cancel", run)
    assert client.until(run, "cancelled", "terminated")["state"] == "cancelled"


def test_the_scheduler_s_refusal_is_told_in_its_own_words(client: Client) -> None:
    done = client.maple(*client.job(), "--directive", "--nodelist=node99")
    assert done.returncode == 5
    assert "node" in done.stderr
    (run,) = client.runs()
    assert client.json("status", run)["state"] == "refused"
    assert client.jobs_of(run) == []


def test_one_call_tells_all_runs(client: Client) -> None:
    started = [str(client.json(*client.job(150), "--no-wait")["run"]) for _ in range(2)]
    client.until(started[0], "running")
    client.until(started[1], "running")
    before = client.submits()
    code = (
        "import maple_parsl as m, time\nruns = m.runs()\ntime.sleep(4)\nprint([r.status().state.value for r in runs])"
    )
    assert client.python(code).strip() == "['running', 'running']"
    after = client.submits()
    assert after - before <= 2
    for run in started:
        client.json("cancel", run)


def test_sites_elsewhere_are_listed_and_probed(client: Client) -> None:
    listed = json.loads(client.maple("endpoints", "list", "--json").stdout)["endpoints"]
    found = {row["site"]: row["state"] for row in listed}
    assert found["slurm-stand"] == "online"
    said = json.loads(client.maple("endpoints", "probe", "slurm-stand", "--json").stdout)
    assert said["commands"] == ["sbatch"]
    assert Path(said["root"]).is_absolute()


def test_four_words_train_on_the_real_scheduler_elsewhere(client: Client) -> None:
    done = client.maple("run", "gpt", "fsdp", "slurm-stand", "--nodes", "2", "--follow", timeout=600)
    assert done.returncode == 0, done.stderr
    (run,) = client.runs()
    assert f"{run}: done, code 0" in done.stdout
    metrics = client.json("status", run)["metrics"]
    assert metrics["last_loss"] < metrics["first_loss"]
    # the program itself counted eight processes on two nodes
    assert re.search(r'"world_size": 8\b.*"hosts": \["node\d", "node\d"\]', done.stdout)
