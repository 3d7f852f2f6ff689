"""The log of a run elsewhere: fetched from where the copy in the mirror ends."""

from __future__ import annotations

import base64
import contextlib
import os
from pathlib import Path

from maple_parsl.errors import StoreError, TransportError
from maple_parsl.runs import files
from maple_parsl.runs import logs as local
from maple_parsl.runs.away import mirror
from maple_parsl.runs.logs import LogPart
from maple_parsl.runs.store import Entry, Summary
from maple_parsl.transport import Transport

PART = 1 << 20
"""Bytes fetched in one call."""
SECONDS = 60.0


def read(entry: Entry, summary: Summary, transport: Transport, offset: int = 0) -> LogPart:
    """The log from a byte offset on (negative: from the end).

    Raises:
        TransportError: the site does not answer; what the mirror has is returned before that is so.
    """
    path = mirror.folder(entry) / local.NAMES[0]
    files.make_folder(path.parent)
    have = path.stat().st_size if path.exists() else 0
    if 0 <= offset < have:
        return local.read(path.parent, offset)
    place = Path(summary.run_dir)
    start = offset if offset < 0 else have
    said = transport.call("read", deadline=SECONDS, root=str(place.parent), run=place.name, offset=start, limit=PART)
    try:
        data, begin = base64.b64decode(said["data"], validate=True), int(said["start"])
    except (KeyError, TypeError, ValueError) as error:
        raise TransportError(f"the site's answer cannot be read: {error}") from None
    if offset < 0:
        return LogPart(data.decode("utf-8", errors="replace"), begin + len(data))
    if begin < have:
        raise StoreError(f"the log of run {entry.id} became shorter at the site; it was replaced by something else")
    _append(path, have, data)
    return local.read(path.parent, offset)


def fetch_all(entry: Entry, summary: Summary, transport: Transport, most: int = 64 << 20) -> None:
    """Bring the mirror's copy up to date, at most ``most`` bytes."""
    path = mirror.folder(entry) / local.NAMES[0]
    while True:
        have = path.stat().st_size if path.exists() else 0
        read(entry, summary, transport, have)
        now = path.stat().st_size if path.exists() else 0
        if now == have or now >= most:
            return


def _append(path: Path, offset: int, data: bytes) -> None:
    """Write at the offset: two clients that fetch the same part write the same bytes."""
    if not data:
        return
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with contextlib.closing(os.fdopen(descriptor, "wb")) as file:
            file.seek(offset)
            file.write(data)
    except OSError as error:
        raise files.explained(path, error, "written") from None
