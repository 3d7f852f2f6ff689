"""From a log of any size to the few thousand lines that matter, in one pass and bounded memory."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from maple_parsl.diagnosis.engine import Pattern, PatternSet, compile_any
from maple_parsl.diagnosis.line import LONGEST, Line, read_line
from maple_parsl.diagnosis.signature import Signatures
from maple_parsl.diagnosis.source import LogSource

SMALL = 2 << 20  # a log up to here is read line by line
HEAD = 200  # lines kept from the beginning of a larger one
TAIL = 256 << 10  # bytes kept from its end
AFTER = 90  # lines kept after the beginning of a traceback
ENOUGH = 48  # matches of one signature after which more tell nothing new
TRACEBACKS = 160
_EXTRA = (
    r"Traceback \(most recent call last\)",
    r"\b(ERROR|CRITICAL|FATAL)\b",
    r"(?i)\b(fatal error|panic)\b",
    r"(?m)^(\[[\w,]*\d+\](<\w+>)?:? ?|\d+: ){0,2}[A-Za-z_][\w.]*(Error|Exception): ",
)


@dataclass(slots=True)
class Digest:
    """The lines of one source that matter, in order."""

    source: LogSource
    lines: list[Line] = field(default_factory=list)
    size: int = 0


class Matcher:
    """The patterns of all signatures, compiled once."""

    def __init__(self, signatures: Signatures) -> None:
        self.patterns: list[str] = []
        self.owner: list[int] = []
        for index, signature in enumerate(signatures.failure):
            self.patterns += signature.any
            self.owner += [index] * len(signature.any)
        self.extra = len(self.patterns)
        self.patterns += _EXTRA
        self.owner += [-1 - number for number in range(len(_EXTRA))]
        self._lines = PatternSet(self.patterns)
        self.everything = compile_any(self.patterns)

    def owners(self, text: bytes) -> tuple[int, ...]:
        """Signatures (from 0) and extra patterns (below 0) that a line matches."""
        return tuple(sorted({self.owner[index] for index in self._lines.matches(text)}))

    def without(self, owners: set[int]) -> Pattern | None:
        """A pattern for what is still looked for."""
        left = [pattern for pattern, owner in zip(self.patterns, self.owner, strict=True) if owner not in owners]
        return compile_any(left) if left else None


def digest(source: LogSource, matcher: Matcher) -> Digest:
    """Read a source once."""
    return _Reader(source, matcher).read()


class _Reader:
    def __init__(self, source: LogSource, matcher: Matcher) -> None:
        self.matcher = matcher
        self.out = Digest(source)
        self.search: Pattern | None = matcher.everything
        self.seen: dict[int, int] = {}
        self.retired: set[int] = set()
        self.follow = 0  # lines still to be kept after a traceback began
        self.head = 0  # number of the last line kept from the beginning
        self.line = 1  # number of the first line of the block

    def read(self) -> Digest:
        kept: list[bytes] = []
        total = 0
        carry = b""
        tail: deque[bytes] = deque()
        large = False
        for block in self.out.source.blocks():
            total += len(block)
            if not large:
                kept.append(block)
                if total <= SMALL:
                    continue
                large, block, kept = True, b"".join(kept), []
                self._head(block)
            carry = self._scan(carry + block if carry else block)
            tail.append(block)
            while len(tail) > 1 and sum(map(len, tail)) - len(tail[0]) >= TAIL:
                tail.popleft()
        self.out.size = total
        if not large:
            self._whole(b"".join(kept))
            return self.out
        if carry:
            self._scan(carry + b"\n")
        self._tail(b"".join(tail)[-TAIL:])
        return self.out

    def _keep(self, number: int, raw: bytes, *, always: bool = True) -> tuple[int, ...]:
        line = read_line(number, raw[:LONGEST])
        line.matched = self.matcher.owners(line.text.encode())
        if always or line.matched:
            self.out.lines.append(line)
        return line.matched

    def _whole(self, data: bytes) -> None:
        for number, raw in enumerate(data.split(b"\n"), 1):
            for part in _parts(raw):
                self._keep(number, part)

    def _head(self, data: bytes) -> None:
        at = 0
        for number in range(1, HEAD + 1):
            end = data.find(b"\n", at)
            if end < 0:
                return
            for part in _parts(data[at:end]):
                self._keep(number, part)
            at, self.head = end + 1, number

    def _tail(self, data: bytes) -> None:
        first = self.line - data.count(b"\n")
        done = {line.number for line in self.out.lines[-5000:]}
        for number, raw in enumerate(data.split(b"\n")[1:], first + 1):
            if number not in done:
                for part in _parts(raw):
                    self._keep(number, part)
        self.out.lines.sort(key=lambda line: line.number)

    def _scan(self, data: bytes) -> bytes:
        """Look through a block; what follows its last line break is for the next."""
        end = data.rfind(b"\n") + 1
        rest = data[end:]
        if not end or len(rest) > 4 * LONGEST:  # a line without end: look at it as it is
            end, rest = len(data), b""
        at = 0
        number, counted = self.line, 0
        while at < end:
            if self.follow:
                stop = data.find(b"\n", at, end)
                stop = end if stop < 0 else stop
                number, counted = number + data.count(b"\n", counted, at), at
                self._hit(number, data[at : min(stop, at + LONGEST)])
                self.follow -= 1
                at = stop + 1
                continue
            found = self.search.search(data, at) if self.search else None
            if found is None or found.start() >= end:
                break
            place = found.start()
            begin = max(data.rfind(b"\n", at, place), data.rfind(b"\r", at, place), at - 1) + 1
            stop = data.find(b"\n", place, end)
            stop = end if stop < 0 else stop
            number, counted = number + data.count(b"\n", counted, begin), begin
            window = max(begin, place - LONGEST // 2)
            self._hit(number, data[window : min(stop, window + LONGEST)])
            at = stop + 1
        self.line += data.count(b"\n", 0, end)
        return rest

    def _hit(self, number: int, raw: bytes) -> None:
        if number <= self.head:  # kept before
            self.follow = AFTER if b"Traceback (most" in raw else self.follow
            return
        owners = [owner for part in _parts(raw) for owner in self._keep(number, part, always=self.follow > 0)]
        for owner in owners:
            if owner == -1 and owner not in self.retired:
                self.follow = AFTER
            self.seen[owner] = self.seen.get(owner, 0) + 1
            if self.seen[owner] == (TRACEBACKS if owner == -1 else ENOUGH):
                self.retired.add(owner)
                self.search = self.matcher.without(self.retired)


def _parts(raw: bytes) -> list[bytes]:
    """A line of a progress bar is many lines, of which the empty ones say nothing."""
    if b"\r" not in raw:
        return [raw]
    parts = [part for part in raw.split(b"\r") if part.strip()]
    return parts[:3] + parts[-3:] if len(parts) > 6 else parts
