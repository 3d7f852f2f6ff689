"""What is in the way of a launch from this machine: each check says what it saw and what to do."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from maple_parsl.catalogue import Catalogue
from maple_parsl.errors import MapleError

Verdict = Literal["ok", "note", "fault"]
_LITTLE_GIB = 1.0


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
        name: what was looked at. verdict: a fault stands in the way of a launch; a note may.
        saw: what was found. remedy: what to do; empty when nothing is to be done.
    """

    name: str
    verdict: Verdict
    saw: str
    remedy: str = ""


def examine(catalogue: Catalogue, environ: Mapping[str, str] | None = None) -> list[Check]:
    """All checks, in the order a person would make them. Reads only, each command with a deadline."""
    environ = os.environ if environ is None else environ
    parts: list[Callable[[], Iterator[Check]]] = [
        lambda: _software(environ),
        lambda: _store(environ),
        lambda: _configuration(catalogue),
        lambda: _site(catalogue, environ),
        lambda: _devices(environ),
    ]
    found: list[Check] = []
    for part in parts:
        try:
            found += part()
        except MapleError as error:
            found.append(Check("maple", "fault", str(error)))
    return found


def _software(environ: Mapping[str, str]) -> Iterator[Check]:
    from maple_parsl.version import VERSION

    yield Check("maple", "ok", f"version {VERSION}, Python {platform.python_version()} ({sys.executable})")
    bash = shutil.which("bash", path=environ.get("PATH"))
    if bash is None:
        yield Check("bash", "fault", "there is no bash on PATH", "job scripts need it; install it")
    python = shutil.which("python3", path=environ.get("PATH"))
    if python is None:
        yield Check("training Python", "note", "no python3 on PATH", "name one with --python, --venv or --conda")
        return
    code = "import importlib.util as u; print(bool(u.find_spec('torch')))"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=10, check=False)
        has = done.stdout.strip() == "True"
    except (OSError, subprocess.TimeoutExpired):
        has = False
    if has:
        yield Check("training Python", "ok", f"{python} has torch")
    else:
        remedy = "fine where a site's module or your --venv, --conda or --container brings it"
        yield Check("training Python", "note", f"{python} has no torch", remedy)


def _store(environ: Mapping[str, str]) -> Iterator[Check]:
    from maple_parsl.runs.store import home

    folder = home(environ)
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        remedy = "set MAPLE_HOME to a folder of yours"
        yield Check("run store", "fault", f"{folder} cannot be written ({existing})", remedy)
        return
    free = shutil.disk_usage(existing).free / 2**30
    if free < _LITTLE_GIB:
        remedy = "set MAPLE_HOME to a folder with more room"
        yield Check("run store", "fault", f"{folder}: only {free:.2f} GiB are free", remedy)
    else:
        yield Check("run store", "ok", f"{folder} ({free:.0f} GiB free)")


def _configuration(catalogue: Catalogue) -> Iterator[Check]:
    faults = [str(fault) for name in catalogue.names() for fault in catalogue.faults(name)]
    for fault in faults:
        yield Check("site files", "fault", fault, "mend the file named, or take it away")
    for notice in catalogue.notices:
        yield Check("site files", "note", str(notice))
    if not faults:
        yield Check("site files", "ok", f"{len(catalogue.names())} sites, all files valid")


def _site(catalogue: Catalogue, environ: Mapping[str, str]) -> Iterator[Check]:
    from maple_parsl.here import detect_site

    found = detect_site(catalogue, environ)
    commands = {"slurm": ("sbatch", ["sinfo", "--version"]), "pbs": ("qsub", ["qstat", "--version"])}
    there = [kind for kind, (command, _) in commands.items() if shutil.which(command, path=environ.get("PATH"))]
    if found.site is None:
        if len(found.candidates) > 1:
            remedy = "set MAPLE_SITE to the right one"
            yield Check("this site", "note", f"could be {' or '.join(found.candidates)}", remedy)
        elif there:
            remedy = "maple sites add NAME describes your own cluster; MAPLE_SITE names a known one"
            yield Check("this site", "note", f"a {there[0]} cluster that Maple does not know", remedy)
        else:
            remedy = "launches on clusters from here: take the script with maple plan --script-only"
            yield Check("this site", "ok", "no cluster: local launches run here", remedy)
        kinds = there
        serious: Verdict = "note"  # commands may be installed here for another cluster
    else:
        yield Check("this site", "ok", f"{found.site}: {'; '.join(found.evidence)}")
        kinds = [kind for kind in commands if kind == catalogue.get(found.site).site.scheduler.kind]
        serious = "fault"
    for kind in kinds:
        yield from _scheduler(kind, environ, serious)


def _scheduler(kind: str, environ: Mapping[str, str], serious: Verdict) -> Iterator[Check]:
    from maple_parsl.schedulers import commands

    question = ["sinfo", "-h", "-o", "%P %a"] if kind == "slurm" else ["qstat", "-Q"]
    try:
        answer = commands.run(question, deadline=10, environ=environ)
    except MapleError as error:
        yield Check("scheduler", serious, str(error), "load the scheduler's module, or ask again later")
        return
    if answer.code:
        yield Check("scheduler", serious, f"{question[0]}: {answer.complaint}", "jobs cannot be sent now; try later")
        return
    count = len([row for row in answer.out.splitlines() if row.strip() and not row.startswith(("Queue", "---"))])
    yield Check("scheduler", "ok", f"{kind} answers: {count} partitions or queues")
    if kind == "slurm":
        with_accounting = commands.run(["sacct", "-X", "-n", "-S", "now"], deadline=10, environ=environ).code == 0
        if not with_accounting:
            remedy = "how a job ended is then known from its own exit record only"
            yield Check("accounting", "note", "sacct gives no answer here", remedy)


def _devices(environ: Mapping[str, str]) -> Iterator[Check]:
    from maple_parsl.here import detect_devices

    found = detect_devices(environ)
    if found.kind == "cpu":
        yield Check("devices", "ok", "no GPU here: local launches train on the processor")
    else:
        yield Check("devices", "ok", f"{found.count} {found.kind}: {', '.join(found.names)}")
