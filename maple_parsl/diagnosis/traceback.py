"""Python tracebacks put together again, also where the output of several ranks is mixed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from maple_parsl.diagnosis.line import Line, prefixed

_FRAME = re.compile(r'\s+File "([^"]+)", line (\d+)(?:, in (.+))?')
_END = re.compile(r"([A-Za-z_][\w.]{2,200})(?:: (.*))?$")
_LIBRARY = re.compile(r"(?:site|dist)-packages/|/lib/python\d|<frozen|<string>|/bin/(?:torchrun|accelerate|deepspeed)")
_CHAIN = ("During handling of the above exception", "The above exception was the direct cause")
PATIENCE = 80  # foreign lines after which an unfinished traceback is given up


@dataclass(slots=True)
class Traceback:
    """One exception. ``line`` is the line that names it.

    Attributes:
        follows: it was raised because of, or while handling, an exception reported before it.
        wraps: it only reports an exception of another process, whose own traceback is printed after it.
        frame: innermost frame of the user's program, or the innermost one.
    """

    key: int | None
    begin: int
    frames: list[tuple[str, int, str]] = field(default_factory=list)
    line: Line | None = None
    kind: str = ""
    message: str = ""
    follows: bool = False
    wraps: bool = False
    foreign: int = 0

    @property
    def frame(self) -> str | None:
        own = [frame for frame in self.frames if not _LIBRARY.search(frame[0])]
        if not self.frames:
            return None
        file, number, function = (own or self.frames)[-1]
        return f"{file}:{number}" + (f" in {function}" if function else "")

    @property
    def of_launcher(self) -> bool:
        return bool(self.frames) and bool(re.search(r"/bin/(torchrun|accelerate|deepspeed)$", self.frames[0][0]))


@dataclass(slots=True)
class Found:
    """Tracebacks in order of their ends, and the numbers of lines that are program text inside them."""

    finished: list[Traceback] = field(default_factory=list)
    code: set[int] = field(default_factory=set)


def find_tracebacks(lines: Iterable[Line]) -> Found:
    """Put together the tracebacks of one source."""
    found = Found()
    opened: dict[int | None, list[Traceback]] = {}
    last: dict[int | None, Traceback] = {}
    chained: set[int | None] = set()
    for line in lines:
        key, body = prefixed(line), line.body
        stack = opened.setdefault(key, [])
        if "Traceback (most recent call last)" in body:
            new = Traceback(key, line.number, follows=key in chained)
            if "Original Traceback" in body and key in last:
                last[key].wraps = True
            chained.discard(key)
            stack.append(new)
            continue
        if body.startswith(_CHAIN):
            chained.add(key)
            continue
        if not stack:
            continue
        current = stack[-1]
        if body[:1] in (" ", ""):
            found.code.add(line.number)
            if frame := _FRAME.match(body):
                current.frames.append((frame[1], int(frame[2]), frame[3] or ""))
            continue
        end = _END.match(body)
        if end and _names_exception(end[1], end[2]) and current.frames:
            current.line, current.kind, current.message = line, end[1].rpartition(".")[2], end[2] or ""
            found.finished.append(current)
            last[key] = stack.pop()
            continue
        current.foreign += 1
        if current.foreign > PATIENCE:
            stack.pop()
    return found


def _names_exception(name: str, message: str | None) -> bool:
    tail = name.rpartition(".")[2]
    if tail.endswith(("Error", "Exception", "Exit", "Interrupt", "Warning", "Timeout", "Failure", "StopIteration")):
        return True
    if message is None:
        return "." in name
    return tail[:1].isupper() and any(character.islower() for character in tail)
