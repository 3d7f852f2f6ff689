"""Folders that Maple writes to: room, quota, and the clock of the file system they are on."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from maple_parsl.catalogue import Catalogue
from maple_parsl.doctor.check import Asked, Check

_LITTLE_GIB = 1.0
_FEW_FILES = 1000
SKEW_NOTED, SKEW_FAULT = 2.0, 60.0
"""Seconds by which clocks may differ: Maple tells apart what lies further apart than the first; above the second
states and times are told wrongly, and certificates may be refused."""


def store(environ: Mapping[str, str]) -> Iterator[Check]:
    """The run store."""
    from maple_parsl.runs.store import home

    yield from _folder("run store", home(environ), "set MAPLE_HOME to a folder")


def run_root(catalogue: Catalogue, environ: Mapping[str, str], asked: Asked) -> Iterator[Check]:
    """Where run directories go: stated by MAPLE_RUN_ROOT or the site's own file, else a folder where one stands."""
    from maple_parsl.here import detect_site
    from maple_parsl.runs.place import node_local, root_of

    name = asked.site or detect_site(catalogue, environ).site
    record = catalogue.get(name) if name else None
    site = record.site if record else catalogue.get("local").site
    root = root_of(site, cwd=catalogue.cwd, environ=environ)
    remedy = "set MAPLE_RUN_ROOT, or run_root under [defaults] in your file of the site, to a folder"
    yield from _folder("run root", root, remedy)
    prefix = node_local(root)
    if prefix and site.scheduler.kind != "none":
        saw = f"{root} is under {prefix}, which each node has for itself"
        yield Check("run root", "note", saw, f"fine for one node; for more, {remedy} that all nodes see")


def _folder(what: str, folder: Path, remedy: str) -> Iterator[Check]:
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        yield Check(what, "fault", f"{folder} cannot be written ({existing})", f"{remedy} of yours")
        return
    free = shutil.disk_usage(existing).free / 2**30
    files = os.statvfs(existing)
    if free < _LITTLE_GIB:
        yield Check(what, "fault", f"{folder}: only {free:.2f} GiB are free", f"{remedy} with more room")
        return
    if files.f_files and files.f_favail < _FEW_FILES:
        saw = f"{folder}: only {files.f_favail} more files fit"
        yield Check(what, "fault", saw, f"{remedy} with more room, or remove files")
        return
    if existing != folder:
        yield Check(what, "ok", f"{folder} ({free:.0f} GiB free; it is made when it is needed)")
        return
    yield from _probed(what, folder, free, remedy)


def _probed(what: str, folder: Path, free: float, remedy: str) -> Iterator[Check]:
    """Write a file: only that shows a quota, and the file system's own clock."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".doctor-") as file:
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
            ahead = os.stat(file.name).st_mtime - time.time()
    except OSError as error:
        full = error.errno in (errno.EDQUOT, errno.ENOSPC)
        saw = f"{folder}: {'your quota is used up' if full else (error.strerror or str(error)).lower()}"
        yield Check(what, "fault", saw, f"{remedy} with more room" if full else f"{remedy} of yours")
        return
    yield Check(what, "ok", f"{folder} ({free:.0f} GiB free)")
    yield from clock(f"clock of the {what}", ahead)


def clock(what: str, ahead: float) -> Iterator[Check]:
    """Whether a clock, ``ahead`` seconds before this machine's, is a fault, a note or nothing."""
    if abs(ahead) <= SKEW_NOTED:
        yield Check(what, "ok", "agrees with this machine's")
        return
    way = "ahead of" if ahead > 0 else "behind"
    saw = f"{abs(ahead):.0f} s {way} this machine's"
    remedy = "states may be told late; ask the site's staff to synchronise the clocks"
    yield Check(what, "fault" if abs(ahead) > SKEW_FAULT else "note", saw, remedy)
