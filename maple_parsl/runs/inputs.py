"""What a run reads, looked at before anything queues: secrets' files, inputs and checkpoints, programs' machines."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from string import Template

from maple_parsl.errors import RequestError
from maple_parsl.finding import Finding
from maple_parsl.plan import Plan
from maple_parsl.runs.architecture import of_file
from maple_parsl.runs.place import visible
from maple_parsl.site import Site

_DAY = 86400.0


def checked(plan: Plan, site: Site, cwd: Path) -> Plan:
    """The plan with what :func:`check` finds; raises as it does."""
    found = check(plan, site, cwd)
    return plan.model_copy(update={"findings": (*plan.findings, *found)}) if found else plan


def check(plan: Plan, site: Site, cwd: Path, now: float | None = None) -> list[Finding]:
    """Test what can be tested from here; findings of severity note, which stop nothing.

    Raises:
        RequestError: an input is absent or cannot be read; it lies where the nodes do not see it; a secret's file
            is open to others; an environment or image was made for another kind of processor.
    """
    _secrets(plan, cwd)
    _architecture(plan, site, cwd)
    notes = []
    for text in plan.request.inputs:
        path = cwd / expanded(text)
        if not os.path.lexists(path):
            raise RequestError(f"the input {text} is not there ({path})")
        if not os.access(path, os.R_OK):
            raise RequestError(f"the input {path} cannot be read: permission denied")
        if plan.scheduler != "none":
            visible(path, site, f"input {text}", "copy it to a shared file system")
            if note := _purge(path, plan, site, time.time() if now is None else now):
                made = {"rule": "input-purge", "class": "INPUTS", "severity": "note", "message": note}
                notes.append(Finding.model_validate({**made, "fix": f"touch {path}", "evidence": _source(site)}))
    return notes


def expanded(text: str) -> str:
    """``~`` and ``$NAME`` as this shell would have them; an unset variable is left for the job."""
    return os.path.expanduser(Template(text).safe_substitute(os.environ))


def _secrets(plan: Plan, cwd: Path) -> None:
    for name, file in plan.request.secrets.items():
        if not file:
            if plan.scheduler != "pbs" and not os.environ.get(name):
                raise RequestError(f"the secret {name} is not set in this shell; set it, or name a file: {name}=FILE")
            continue
        path = cwd / expanded(file)
        try:
            found = os.stat(path)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise RequestError(f"the file of the secret {name}, {path}, cannot be read: {reason}") from None
        if not stat.S_ISREG(found.st_mode):
            raise RequestError(f"the file of the secret {name}, {path}, is no regular file")
        if found.st_mode & 0o077 or found.st_uid != os.geteuid():
            raise RequestError(f"the file of the secret {name} is open to others: chmod 600 {path}")


def _purge(path: Path, plan: Plan, site: Site, now: float) -> str | None:
    """Whether the site may delete an input before the job has read it."""
    days = site.storage.purge_days if site.storage else None
    if days is None:
        return None
    try:
        found = os.stat(path)
    except OSError:
        return None
    age = (now - max(found.st_atime, found.st_mtime)) / _DAY
    margin = 1 + (int(plan.walltime) / _DAY if plan.walltime else 0)
    if age + margin < days:
        return None
    return f"{path} was last used {age:.0f} days ago, and files here may be deleted after {days} days unused"


def _source(site: Site) -> str | None:
    return f"{site.storage.source}, checked {site.storage.checked_on}" if site.storage else None


def _architecture(plan: Plan, site: Site, cwd: Path) -> None:
    """An environment or image for another kind of processor cannot start on the nodes."""
    kind = site.kinds.get(plan.kind)
    software = plan.request.environment
    if kind is None or kind.arch is None:
        return
    candidates = {
        "virtual environment": f"{software.venv}/bin/python" if software.venv else None,
        "conda environment": f"{software.conda}/bin/python" if software.conda and "/" in software.conda else None,
        "interpreter": software.python,
        "container image": software.container,
    }
    for what, text in candidates.items():
        if not text or (what != "container image" and software.container):
            continue  # a path inside the image
        made_for = of_file(cwd / expanded(text))
        if made_for is not None and made_for != kind.arch:
            raise RequestError(
                f"the {what} {text} is made for {made_for}, and the {plan.kind} nodes of {site.name} are {kind.arch};"
                " make it on a machine of that kind"
            )
