"""One launchable request per site and node kind, shared by golden, scheduler and mutation tests."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from maple_parsl import template
from maple_parsl.compose import compose
from maple_parsl.plan import Plan
from maple_parsl.request import PARADIGMS, Request
from maple_parsl.site import Site
from maple_parsl.template import Template

ROOT = Path(__file__).parents[1]

# Accounts have the form the site uses; the projects do not exist.
SITES: dict[str, dict[str, Any]] = {
    "polaris": {"site": "polaris", "queue": "debug", "account": "demo"},
    "aurora": {"site": "aurora", "queue": "debug", "account": "demo"},
    "perlmutter": {"site": "perlmutter", "queue": "debug", "account": "m0000"},
    "vista": {"site": "vista", "queue": "gh-dev"},
    "lonestar6": {"site": "lonestar6", "queue": "gpu-a100-dev"},
    "stampede3-h100": {"site": "stampede3", "queue": "h100"},
    "stampede3-pvc": {"site": "stampede3", "queue": "pvc"},
    "delta": {"site": "delta", "queue": "gpuA100x4", "account": "demo-delta-gpu"},
    "deltaai": {"site": "deltaai", "queue": "ghx4", "account": "demo-dtai-gh"},
    "anvil": {"site": "anvil", "queue": "gpu", "account": "demo-gpu"},
    "frontier": {"site": "frontier", "queue": "batch", "account": "demo"},
    "derecho": {"site": "derecho", "queue": "main", "account": "demo"},
    "expanse": {"site": "expanse", "queue": "gpu", "account": "demo", "memory": "300G"},
    "bridges2": {"site": "bridges2", "queue": "GPU", "account": "demo"},
    "sophia": {"site": "sophia", "queue": "by-node", "account": "demo"},
    "frontera": {"site": "frontera", "queue": "rtx-dev"},
    "aces": {"site": "aces", "queue": "gpu", "account": "demo", "memory": "200G", "gpus_per_node": 2},
    "local": {"site": "local", "nodes": None, "walltime": None, "node_kind": "cpu", "gpus_per_node": 2},
}


@cache
def site(name: str) -> Site:
    return Site.model_validate(tomllib.loads((ROOT / "providers" / f"{name}.toml").read_text()))


@cache
def templates() -> dict[str, Template]:
    return template.load(ROOT / "agents" / "retrieval" / "templates")


def request(case: str, paradigm: str = "ddp", **more: Any) -> Request:
    fields = {"model": "gpt", "paradigm": paradigm, "nodes": 2, "walltime": "30m", **SITES[case], **more}
    return Request.of(**fields)


def plan(case: str, paradigm: str = "ddp", **more: Any) -> Plan:
    return compose(request(case, paradigm, **more), site(SITES[case]["site"]), templates())


CASES = [(case, paradigm) for case in SITES for paradigm in PARADIGMS]
