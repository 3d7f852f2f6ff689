"""Several sites: the run goes where it fits and would start first, and says why."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from tests.integration.globus.client import Client

CHOOSE = """
import json, sys
import maple_parsl as maple
sites, nodes = json.loads(sys.argv[1])
run = maple.run("gpt", "ddp", sites, nodes=nodes, gpus_per_node=1, walltime="5m", yes=True, dry_run=True)
print(json.dumps([run.plan.site, run.plan.provenance["site"].why]))
"""


def until(holds: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.5)


def choose(client: Client, sites: str | list[str], nodes: int) -> tuple[str, str]:
    site, why = json.loads(client.python(CHOOSE, json.dumps([sites, nodes])).splitlines()[-1])
    return site, why


def test_queue_facts_of_the_listed_sites_choose_and_the_reason_is_shown(client: Client) -> None:
    site, why = choose(client, "any", 2)
    assert site == "slurm-stand"
    assert "nodes idle, 0 jobs wait in gpu" in why
    assert "nvidia-stand: " in why
    hold = ["sbatch", "--parsable", "--partition=gpu", "--nodes=4", "--exclusive", "--output=/dev/null"]
    place = client.stand.places["slurm-stand"]
    jobs = [client.stand.as_user(place, [*hold, "--wrap=sleep 600"]).strip() for _ in range(2)]
    try:
        until(lambda: "RUNNING" in client.stand.as_user(place, ["squeue", "--noheader", "--format=%T"]))
        site, why = choose(client, ["slurm-stand", "nvidia-stand"], 1)
        assert site == "nvidia-stand"
        assert "slurm-stand: 0 nodes idle, 1 jobs wait in gpu" in why
    finally:
        client.stand.as_user(place, ["scancel", *jobs])
