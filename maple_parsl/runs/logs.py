"""The log of a run, read by byte offset, so that a reader can go on where it stopped."""

from __future__ import annotations

import os
from pathlib import Path

from maple_parsl.runs import files

LARGEST_PART = 8 << 20
NAMES = ("log.txt", "scheduler.log")


class LogPart(str):
    """Text of a log.

    Attributes:
        offset: bytes of the log up to the end of this part.
    """

    offset: int

    def __new__(cls, text: str, offset: int) -> LogPart:
        part = super().__new__(cls, text)
        part.offset = offset
        return part


def read(run_dir: Path, offset: int = 0, limit: int = LARGEST_PART) -> LogPart:
    """The log from a byte offset on, at most ``limit`` bytes; a negative offset counts from the end.

    A character cut in two by the end of what is written so far is left for the next part.

    Raises:
        StoreError: the log cannot be read. A log that does not exist yet is empty.
    """
    path = next((run_dir / name for name in NAMES if (run_dir / name).exists()), run_dir / NAMES[0])
    try:
        with files.open_regular(path) as file:
            size = file.seek(0, os.SEEK_END)
            start = max(0, size + offset) if offset < 0 else min(offset, size)
            file.seek(start)
            data = file.read(limit)
    except FileNotFoundError:
        return LogPart("", max(0, offset))
    except OSError as error:
        raise files.explained(path, error, "read") from None
    whole = data[: len(data) - _cut(data)]
    return LogPart(whole.decode("utf-8", errors="replace"), start + len(whole))


def _cut(data: bytes) -> int:
    """How many bytes at the end begin a character without completing it."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return back if length > back else 0
    return 0


def missing(run_dir: Path) -> str | None:
    """Why there is no log, or None when there is one."""
    if any((run_dir / name).exists() for name in NAMES):
        return None
    if not run_dir.is_dir():
        return f"the run directory {run_dir} is gone (purged or moved), and the log with it"
    return "there is no log yet"
