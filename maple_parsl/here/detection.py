"""Which site this machine is, by what the site itself sets; a host name's beginning proves nothing."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from maple_parsl.catalogue import Catalogue
from maple_parsl.errors import MapleError
from maple_parsl.here.command import Runner, ask
from maple_parsl.site import Detect

Match = tuple[str, str]
"""A site and the evidence for it."""


@dataclass(frozen=True, slots=True)
class Detection:
    """What was found.

    Attributes:
        site: the site this machine is; None when nothing or more than one site fits.
        evidence: what was seen, one sentence each.
        candidates: every site that fits.
    """

    site: str | None
    evidence: tuple[str, ...]
    candidates: tuple[str, ...]


def full_host_name(deadline: float = 2.0) -> str | None:
    """The fully qualified host name; None when name resolution does not answer in time."""
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(socket.getfqdn()), daemon=True)
    thread.start()
    thread.join(deadline)
    return found[0] if found else None


def detect_site(
    catalogue: Catalogue,
    environ: Mapping[str, str] | None = None,
    *,
    run: Runner = ask,
    host: Callable[[], str | None] = full_host_name,
    etc: Path = Path("/etc"),
) -> Detection:
    """Find this machine's site: the environment decides, then the scheduler's name, then the domain.

    ``MAPLE_SITE`` overrides; :class:`UnknownNameError` when it names no site.
    """
    environ = os.environ if environ is None else environ
    if stated := environ.get("MAPLE_SITE", "").strip():
        name = catalogue.get(stated).site.name
        return Detection(name, (f"MAPLE_SITE={stated}",), (name,))
    facts, evidence = _facts(catalogue)
    excluded = {name for name, detect in facts.items() if _contradicted(detect, environ)}
    facts = {name: detect for name, detect in facts.items() if name not in excluded}
    tiers: tuple[Callable[[], Iterator[Match]], ...] = (
        partial(_by_environment, facts, environ),
        partial(_by_scheduler, facts, environ, run, etc),
        partial(_by_domain, facts, host),
    )
    for tier in tiers:
        matches = list(tier())
        if matches:
            names = tuple(sorted({name for name, _ in matches}))
            evidence += [f"{name}: {text}" for name, text in matches]
            if len(names) > 1:
                evidence.append(f"{' and '.join(names)} fit equally; set MAPLE_SITE or name the site")
            return Detection(names[0] if len(names) == 1 else None, tuple(evidence), names)
    return Detection(None, tuple(evidence), ())


def _facts(catalogue: Catalogue) -> tuple[dict[str, Detect], list[str]]:
    facts: dict[str, Detect] = {}
    broken: list[str] = []
    for name in catalogue.names():
        try:
            detect = catalogue.get(name).site.detect
        except MapleError as error:
            broken.append(f"{name} was not considered: {error}")
            continue
        if detect:
            facts[name] = detect
    return facts, broken


def _contradicted(detect: Detect, environ: Mapping[str, str]) -> bool:
    """A variable that this site sets is set to something else, and none is as the site sets it."""
    present = [environ[key].lower() == value.lower() for key, value in detect.env.items() if environ.get(key)]
    return bool(present) and not any(present)


def _by_environment(facts: Mapping[str, Detect], environ: Mapping[str, str]) -> Iterator[Match]:
    for name, detect in facts.items():
        for key, value in detect.env.items():
            if environ.get(key, "").lower() == value.lower():
                yield name, f"{key}={environ[key]}"
        for key, part in detect.env_contains.items():
            if part.lower() in environ.get(key, "").lower():
                yield name, f"{key} contains {part!r}"


def _by_scheduler(facts: Mapping[str, Detect], environ: Mapping[str, str], run: Runner, etc: Path) -> Iterator[Match]:
    if any(detect.slurm_cluster for detect in facts.values()):
        cluster, how = _slurm_cluster(environ, run, etc)
        for name, detect in facts.items():
            if cluster and (detect.slurm_cluster or "").lower() == cluster.lower():
                yield name, f"the Slurm cluster is {cluster} ({how})"
    if any(detect.pbs_server for detect in facts.values()):
        server, how = _pbs_server(environ, run, etc)
        for name, detect in facts.items():
            if server and detect.pbs_server and detect.pbs_server.lower() in server.lower():
                yield name, f"the PBS server is {server} ({how})"


def _by_domain(facts: Mapping[str, Detect], host: Callable[[], str | None]) -> Iterator[Match]:
    if not any(detect.domain for detect in facts.values()):
        return
    full = (host() or "").lower().rstrip(".")
    for name, detect in facts.items():
        for domain in detect.domain:
            wanted = domain.lower().strip(".")
            if wanted and (full == wanted or full.endswith(f".{wanted}")):
                yield name, f"this host is {full}, in the domain {wanted}"


def _slurm_cluster(environ: Mapping[str, str], run: Runner, etc: Path) -> tuple[str | None, str]:
    if name := environ.get("SLURM_CLUSTER_NAME"):
        return name, "SLURM_CLUSTER_NAME"
    pattern = re.compile(r"^\s*ClusterName\s*=\s*([^\s#]+)", re.M | re.I)
    if found := pattern.search(run(["scontrol", "show", "config"]) or ""):
        return found[1], "scontrol show config"
    conf = etc / "slurm" / "slurm.conf"
    found = pattern.search(_text(conf))
    return (found[1] if found else None), str(conf)


def _pbs_server(environ: Mapping[str, str], run: Runner, etc: Path) -> tuple[str | None, str]:
    if name := environ.get("PBS_SERVER"):
        return name, "PBS_SERVER"
    if server := environ.get("PBS_JOBID", "").partition(".")[2]:
        return server, "PBS_JOBID"
    try:
        servers = json.loads(run(["qstat", "-B", "-f", "-F", "json"]) or "{}").get("Server", {})
        if servers:
            return str(next(iter(servers))), "qstat -B"
    except (ValueError, AttributeError, TypeError):
        pass  # an older PBS that knows no JSON
    conf = etc / "pbs.conf"
    found = re.search(r"^\s*PBS_SERVER\s*=\s*([^\s#]+)", _text(conf), re.M)
    return (found[1] if found else None), str(conf)


def _text(path: Path) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1 << 20)
    except OSError:
        return ""
