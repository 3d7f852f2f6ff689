"""The files of a run as they are sent: by content, each once."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maple_parsl.errors import RequestError, StoreError
from maple_parsl.runs import files
from maple_parsl.transport import Transport

PART = 3 << 20
"""Bytes of files in one call; more are staged in several."""
LARGEST = 5 << 20
"""Bytes of one file that travels with a run; larger ones belong at the site."""


@dataclass(frozen=True)
class Bundled:
    """A file: its path in the run directory, content and mode."""

    name: str
    data: bytes
    mode: int

    @property
    def sha(self) -> str:
        """SHA-256 of its content."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def row(self) -> list[Any]:
        """As :func:`maple_parsl.remote.folders.lay_out` takes it."""
        return [self.name, self.sha, self.mode]


def collect(folder: Path) -> list[Bundled]:
    """Every file below a folder.

    Raises:
        RequestError: one is too large to travel. StoreError: one cannot be read.
    """
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_dir() or path.name.endswith(".pyc"):
            continue
        try:
            data, mode = path.read_bytes(), path.stat().st_mode & 0o755
        except OSError as error:
            raise files.explained(path, error, "read") from None
        if len(data) > LARGEST:
            raise RequestError(
                f"{path.name} has {len(data) >> 20} MiB; files above {LARGEST >> 20} MiB do not travel with a run. Put"
                " it at the site (Globus Transfer, scp) and name its path there"
            )
        found.append(Bundled(os.fspath(path.relative_to(folder)), data, mode))
    return found


def contents(bundle: Iterable[Bundled], wanted: Iterable[str]) -> dict[str, str]:
    """Those of the wanted hashes, as they are sent."""
    names = set(wanted)
    return {one.sha: base64.b64encode(one.data).decode() for one in bundle if one.sha in names}


def stage(
    transport: Transport, root: str, bundle: list[Bundled], lacking: list[str], deadline: float
) -> dict[str, str]:
    """Send what the site lacks, in parts; what is left fits the call that submits and is returned.

    Raises:
        TransportError: the site did not take it.
    """
    parts: list[list[str]] = [[]]
    size = 0
    sizes = {one.sha: len(one.data) for one in bundle}
    for sha in lacking:
        if sizes[sha] + size > PART and parts[-1]:
            parts.append([])
            size = 0
        parts[-1].append(sha)
        size += sizes[sha]
    for part in parts[:-1]:
        said = transport.call("stage", deadline=deadline, root=root, contents=contents(bundle, part), hashes=part)
        if said.get("missing"):
            raise StoreError(f"the site did not keep {len(said['missing'])} files that were sent; try again")
    return contents(bundle, parts[-1])
