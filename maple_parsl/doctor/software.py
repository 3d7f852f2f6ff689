"""Python, shell, locale, devices, and whether a training environment can be imported."""

from __future__ import annotations

import locale
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from maple_parsl.catalogue import Catalogue
from maple_parsl.doctor.check import Asked, Check
from maple_parsl.errors import ComposeError, SchedulerError
from maple_parsl.shell import quote

IMPORTING = 120.0
"""Seconds that importing torch may take: on a parallel file system that is busy, minutes are not rare."""
_SAYS = "import sys, torch; print('torch', torch.__version__, 'on Python', sys.version.split()[0])"


def machine(environ: Mapping[str, str]) -> Iterator[Check]:
    """Maple's own Python, bash, the locale, the Python found on PATH."""
    from maple_parsl.version import VERSION

    yield Check("maple", "ok", f"version {VERSION}, Python {platform.python_version()} ({sys.executable})")
    if shutil.which("bash", path=environ.get("PATH")) is None:
        yield Check("bash", "fault", "there is no bash on PATH", "job scripts need it; install it")
    yield _locale(environ)
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


def _locale(environ: Mapping[str, str]) -> Check:
    stated = next((environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environ.get(name)), "")
    encoding = locale.getencoding()
    if encoding.lower().replace("-", "") == "utf8":
        return Check("locale", "ok", f"{stated or 'none stated'}, encoding {encoding}")
    remedy = "export LC_ALL=C.UTF-8, so that programs read and print every character"
    return Check("locale", "note", f"{stated or 'none stated'}: the encoding is {encoding}", remedy)


def environment(catalogue: Catalogue, environ: Mapping[str, str], asked: Asked) -> Iterator[Check]:
    """Whether the environment that was named activates and imports torch on this host, by the lines of a job."""
    if not asked.environment:
        return
    from maple_parsl.api import plan
    from maple_parsl.request import Request
    from maple_parsl.schedulers import commands

    site = asked.site or _here(catalogue, environ) or "local"
    record = catalogue.get(site)
    name = f"environment on {platform.node()}"
    if dict(asked.environment).get("container"):
        yield Check(name, "note", "a container is entered on a node only", "maple doctor --node tries it there")
        return
    job: dict[str, Any] = {"nodes": 1, "walltime": record.site.scheduler.min_walltime or "10m"}
    fields: dict[str, Any] = {"site": site, "script": "probe.py", "account": asked.account, "queue": asked.queue}
    fields |= {} if record.site.scheduler.kind == "none" else job
    try:
        made = plan(request=Request.of(**fields, **dict(asked.environment)))
    except ComposeError as error:  # the lines of a job are those of a whole plan
        yield Check(name, "note", f"it cannot be tried: {error}", "name what is missing, such as --account and --queue")
        return
    python = made.launch.program[0]
    lines = [
        *(f"{step.line} || {{ echo {quote(step.line)} fails >&2; exit 1; }}" for step in made.setup),
        f"{python if isinstance(python, str) else 'python3'} -c {quote(_SAYS)}",
    ]
    try:
        answer = commands.run(["bash", "-lc", "\n".join(lines)], deadline=IMPORTING, environ=environ, here=True)
    except SchedulerError as error:
        yield Check(name, "fault", str(error), "look at the environment's file system; try again")
        return
    if answer.code == 0:
        yield Check(name, "ok", answer.out.strip().splitlines()[-1])
        return
    remedy = "activate it by hand and import torch; on a node it may differ: maple doctor --node"
    yield Check(name, "fault", answer.complaint, remedy)


def _here(catalogue: Catalogue, environ: Mapping[str, str]) -> str | None:
    from maple_parsl.here import detect_site

    return detect_site(catalogue, environ).site


def devices(environ: Mapping[str, str]) -> Iterator[Check]:
    """GPUs of this machine."""
    from maple_parsl.here import detect_devices

    found = detect_devices(environ)
    if found.kind == "cpu":
        yield Check("devices", "ok", "no GPU here: local launches train on the processor")
    else:
        yield Check("devices", "ok", f"{found.count} {found.kind}: {', '.join(found.names)}")
