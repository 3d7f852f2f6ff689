"""Asking a command something, without ever waiting for it longer than promised."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Sequence

DEADLINE = 3.0
Runner = Callable[[Sequence[str]], str | None]


def ask(command: Sequence[str], deadline: float = DEADLINE) -> str | None:
    """What the command prints; None when it is missing, fails, or does not answer in time."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None
    try:
        output, _ = process.communicate(timeout=deadline)
    except subprocess.TimeoutExpired:
        _end(process)
        return None
    except BaseException:
        _end(process)
        raise
    return output.decode("utf-8", "replace") if process.returncode == 0 else None


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)  # with whatever it started, which may hold the pipe
    if process.stdout:
        process.stdout.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(0.5)  # a command stuck in the kernel does not even die
