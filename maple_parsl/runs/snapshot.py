"""A copy of the working tree, so that later edits do not change a job that is still queued."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from maple_parsl.errors import RequestError, StoreError
from maple_parsl.runs import files

DEFAULT_CAP = 512 << 20
"""Bytes a snapshot may hold; MAPLE_SNAPSHOT_MIB changes it."""
_SKIPPED = {".git", ".hg", ".svn", "__pycache__", ".venv", "node_modules", ".mypy_cache", ".ruff_cache"}


def snapshot(source: Path, target: Path, *, cap: int | None = None) -> int:
    """Copy the files of ``source`` to ``target``; the number of bytes copied.

    In a git work tree: what git tracks and what it does not ignore, as it is on disk now. Elsewhere: everything
    but version control, caches and run directories. Symbolic links stay links; one that is absolute and points
    into the tree is made relative, so that it does not lead back to the original.

    Raises:
        RequestError: the tree is larger than the cap.
        StoreError: a file cannot be copied.
    """
    limit = cap if cap is not None else _cap()
    total = 0
    target.mkdir(parents=True, exist_ok=True)
    for relative in _listed(source, target):
        origin, copy = source / relative, target / relative
        try:
            if origin.is_symlink():
                copy.parent.mkdir(parents=True, exist_ok=True)
                os.symlink(_link(origin, source), copy)
                continue
            if not origin.is_file():
                continue  # deleted since it was listed, or no file (a socket, a device)
            total += origin.stat().st_size
            if total > limit:
                raise RequestError(
                    f"the working tree {source} has more than {limit >> 20} MiB to copy (at {relative}); ignore"
                    " data with .gitignore, start in a smaller folder, or raise MAPLE_SNAPSHOT_MIB"
                )
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(origin, copy)
        except OSError as error:
            raise files.explained(origin, error, "copied into the snapshot") from None
    return total


def _cap() -> int:
    stated = os.environ.get("MAPLE_SNAPSHOT_MIB", "")
    return int(stated) << 20 if stated.isdecimal() else DEFAULT_CAP


def _link(origin: Path, source: Path) -> str:
    to = os.readlink(origin)
    if os.path.isabs(to) and Path(to).is_relative_to(source):
        return os.path.relpath(to, origin.parent)
    if not os.path.isabs(to):
        reached = Path(os.path.normpath(origin.parent / to))
        if not reached.is_relative_to(source):
            return str(reached)  # a relative link out of the tree would lead elsewhere from the copy
    return to


def _listed(source: Path, target: Path) -> Iterator[str]:
    listed = _by_git(source)
    found = listed if listed is not None else _walk(source)
    runs = _run_folders(source, target)
    for relative in found:
        path = source / relative
        if not any(path.is_relative_to(folder) for folder in runs):
            yield relative


def _run_folders(source: Path, target: Path) -> list[Path]:
    """Folders inside the tree that hold runs: this one's root, and the usual one."""
    return [source / "maple-runs", target.parent.parent] if target.is_relative_to(source) else [source / "maple-runs"]


def _by_git(source: Path) -> list[str] | None:
    command = ["git", "-C", str(source), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    return sorted({os.fsdecode(name) for name in done.stdout.split(b"\0") if name})


def _walk(source: Path) -> Iterator[str]:
    def unreadable(error: OSError) -> None:
        raise StoreError(f"the snapshot cannot read {error.filename}: {error.strerror}")

    for folder, names, found in os.walk(source, onerror=unreadable):
        linked = [name for name in names if os.path.islink(os.path.join(folder, name))]
        names[:] = sorted(name for name in names if name not in _SKIPPED and name not in linked)
        for name in sorted((*found, *linked)):
            yield os.path.relpath(os.path.join(folder, name), source)
