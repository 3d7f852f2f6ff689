"""Agents answered through two real endpoints: batched, in time, and by the other when one dies."""

from __future__ import annotations

import json
import threading
import time

from tests.integration.globus.client import Client

SITES = ("nvidia-stand", "intel-stand")
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
# A model small enough for load: it answers with the prompt's length, and holds itself loaded in its worker.
TINY = """
import json, os, sys, time, types

def entry(text):
    asked = json.loads(text)
    held = sys.modules.setdefault("tiny_model", types.ModuleType("tiny_model"))
    held.loads = getattr(held, "loads", 0) + (0 if hasattr(held, "loads") else 1)
    if asked["op"] == "probe":
        return json.dumps({"ok": True, "value": {"pid": os.getpid(), "loads": held.loads}})
    time.sleep(0.01 * len(asked["prompts"]))
    rows = [{"text": json.dumps({"n": len(prompt[0]["content"])})} for prompt in asked["prompts"]]
    return json.dumps({"ok": True, "value": {"answers": rows, "pid": os.getpid(), "loads": held.loads}})
"""
USE = """
import json, sys, threading, time
from maple_parsl.fleet import Fleet, Member
source, schema, members, count, seconds, batch = json.loads(sys.argv[1])
fleet = Fleet([Member(*one) for one in members], source=source, hedge_seconds=15)
rows = []
end = time.monotonic() + seconds
while len(rows) < count and time.monotonic() < end:
    began = time.monotonic()
    found = fleet.answer([[{"role": "user", "content": "x" * n}] for n in range(batch)], schema, 60)
    good = [json.loads(text)["n"] for text in found.texts] == list(range(batch))
    rows.append([found.member, time.monotonic() - began, good, [[s.member, s.what] for s in found.trace]])
    print(json.dumps(rows[-1]), flush=True)
"""


def words(client: Client, sites: tuple[str, ...], count: int, batch: int, seconds: float = 240) -> str:
    members = [[site, client.stand.endpoint_id(site), "tiny"] for site in sites]
    return json.dumps([TINY, SCHEMA, members, count, seconds, batch])


def rows_of(text: str) -> list[list[object]]:
    return [json.loads(row) for row in text.splitlines() if row.startswith("[")]


def test_a_hundred_prompts_are_one_round_trip_and_a_warm_answer_costs_one_too(client: Client) -> None:
    before = client.submits(SITES[0])
    rows = rows_of(client.python(USE, words(client, SITES[:1], 6, 100)))
    after = client.submits(SITES[0])
    assert len(rows) == 6
    assert all(row[2] for row in rows)
    assert after - before == 6
    warm = sorted(float(str(row[1])) for row in rows[1:])
    print(f"100 prompts, warm: {warm[len(warm) // 2]:.2f} s at the median, of which 1.00 s in the worker")


def test_one_is_killed_under_load_and_only_the_route_changes(client: Client) -> None:
    found: list[str] = []
    load = threading.Thread(target=lambda: found.append(client.python(USE, words(client, SITES, 40, 5))))
    load.start()
    time.sleep(20)
    victim = SITES[0]
    client.stand.end_endpoint(victim)
    try:
        load.join(300)
    finally:
        client.stand.start_endpoint(victim)
        client.stand.wait_online(victim)
    rows = rows_of(found[0])
    assert len(rows) == 40
    assert all(row[2] for row in rows)
    assert rows[-1][0] == SITES[1]


def test_the_fleet_is_made_of_what_the_user_s_files_name(client: Client) -> None:
    code = "from maple_parsl.fleet import members; print(sorted(m.name for m in members()))"
    assert client.python(code).strip() == str(sorted(set(SITES) & set(client.stand.places)))
