"""Single keys from the terminal, without waiting for Enter."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def pressed() -> Iterator[Callable[[float], str]]:
    """A function that waits at most so many seconds for a key and gives it, or nothing. Restores the terminal."""
    if not sys.stdin.isatty():
        yield _wait
        return
    import termios
    import tty

    source = sys.stdin.fileno()
    before = termios.tcgetattr(source)

    def key(seconds: float) -> str:
        ready, _, _ = select.select([source], [], [], seconds)
        return os.read(source, 1).decode("latin-1") if ready else ""

    try:
        tty.setcbreak(source)
        yield key
    finally:
        termios.tcsetattr(source, termios.TCSADRAIN, before)


def _wait(seconds: float) -> str:
    time.sleep(seconds)
    return ""
