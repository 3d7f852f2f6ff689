"""Where log lines come from: files, compressed files, standard input, text in memory."""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal

BLOCK = 1 << 20
Kind = Literal["submission", "log", "accounting"]
_RANK = re.compile(
    r"(?:rank|task|proc|local)[_.-]?(\d{1,6})\b|attempt_\d+/(\d{1,6})/|(?:std)?(?:err|out)[_.-](\d{1,5})$"
)


@dataclass(frozen=True, slots=True)
class LogSource:
    """One log. ``kind``: what the scheduler said at submission, what the job printed, what accounting says."""

    name: str
    path: Path | None = None
    stream: BinaryIO | None = field(default=None, compare=False)
    data: bytes | None = None
    kind: Kind = "log"

    @classmethod
    def of_text(cls, name: str, text: str | bytes, kind: Kind = "log") -> LogSource:
        data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        return cls(name, data=data, kind=kind)

    @property
    def rank(self) -> int | None:
        """The rank that the file's name states."""
        name = self.name.lower().removesuffix(".gz").removesuffix(".log").removesuffix(".txt")
        found = _RANK.search(name)
        return int(next(group for group in found.groups() if group)) if found else None

    def blocks(self) -> Iterator[bytes]:
        """The bytes in blocks; gzip is recognised by its first bytes, and a cut-off end is no error."""
        if self.data is not None:
            raw: BinaryIO = io.BytesIO(self.data)
        elif self.stream is not None:
            yield from _blocks(self.stream)
            return
        elif self.path is not None:
            raw = self.path.open("rb", buffering=0)
        else:
            return
        with closing(raw):
            yield from _blocks(raw)


def _blocks(raw: BinaryIO) -> Iterator[bytes]:
    first = raw.read(BLOCK)
    if first[:2] != b"\x1f\x8b":
        while first:
            yield first
            first = raw.read(BLOCK)
        return
    unpack = zlib.decompressobj(wbits=31)
    block = first
    try:
        while block:
            if out := unpack.decompress(block, BLOCK):
                yield out
            block = unpack.unconsumed_tail
            if unpack.eof:  # several files in one
                block = unpack.unused_data.lstrip(b"\0")
                unpack = zlib.decompressobj(wbits=31)
            block = block or raw.read(BLOCK)
    except zlib.error:  # what was read so far is kept
        return
