"""Agents answered by a real model on real endpoints: when one dies, only the route changes."""

from __future__ import annotations

import json
import threading
import time

from tests import tiny_model
from tests.integration.globus.client import Client

WORDS = "fsdp train.py on 2 polaris nodes, 1 hour in debug, and let the Tidewater pot pay for it"
SITES = ("nvidia-stand", "intel-stand")
ASK = """
import json, sys, time
from maple_parsl import api
from maple_parsl.fleet import Fleet, members
words, sites, count, pause = json.loads(sys.argv[1])
for site in sites:  # both hold their model before it begins
    schema = {"type": "object", "properties": {"n": {"enum": ["a", "b"]}}, "required": ["n"]}
    schema["additionalProperties"] = False
    Fleet(members(site)).answer([[{"role": "user", "content": "x"}]], schema, 400)
print("warm", flush=True)
for _ in range(count):
    answer = api.ask(words)
    (step,) = [one for one in answer.trace.steps if one.round == 2]
    said = answer.to_dict()
    del said["trace"]
    decision = {name: step.decision[name] for name in ("filled", "refused")} if step.route else step.decision
    print(json.dumps([step.model, step.route, said, decision]), flush=True)
    time.sleep(pause)
"""


def test_agents_answer_through_two_endpoints_and_killing_one_changes_only_the_route(client: Client) -> None:
    stand = client.stand
    model = stand.prefix / "model"
    if not model.exists():
        tiny_model.write(model)
    client.env |= stand.client_environment(client.folder, str(model)) | {"MAPLE_MODEL": "globus:any"}
    found: list[str] = []
    asking = json.dumps([WORDS, SITES, 25, 1.0])
    load = threading.Thread(target=lambda: found.append(client.python(ASK, asking, timeout=900)))
    load.start()
    victim = _busy(client, load)
    stand.end_endpoint(victim)
    try:
        load.join(600)
    finally:
        stand.start_endpoint(victim)
        stand.wait_online(victim)
    rows = [json.loads(row) for row in found[0].splitlines() if row.startswith("[")]
    assert len(rows) == 25
    other = next(site for site in SITES if site != victim)
    answered = [row[0].rpartition("@")[2] for row in rows]
    assert victim in answered
    assert answered[-1] == other
    assert {json.dumps(row[2:]) for row in rows} == {json.dumps(rows[0][2:])}
    assert any(step.startswith(f"{victim}: ") and "answered" not in step for row in rows for step in row[1])


def _busy(client: Client, load: threading.Thread) -> str:
    """The endpoint that has been asked a few times."""
    ids = {client.stand.endpoint_id(site): site for site in SITES}
    seen: dict[str, int] = dict.fromkeys(SITES, 0)
    start = len(client.stand.calls())
    while load.is_alive():
        seen = dict.fromkeys(SITES, 0)
        for _, _, path in client.stand.calls()[start:]:
            for endpoint, site in ids.items():
                seen[site] += path.endswith(f"{endpoint}/submit")
        for site, count in seen.items():
            if count >= 4:
                return site
        time.sleep(0.5)
    raise AssertionError(f"it ended before: {seen}")
