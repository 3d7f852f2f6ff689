"""Whether bash would take a line by itself; nothing of it is run."""

from __future__ import annotations

import os
import subprocess


def fault(line: str) -> str | None:
    """What bash says against the line: not whole, or no shell at all. None when it is fine, or bash is not here."""
    try:
        done = subprocess.run(
            ["bash", "-n", "-O", "extglob", "-c", line],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=5,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    said = done.stderr.decode("utf-8", "replace").strip().split("\n")[0]
    if done.returncode == 0 and "here-document" not in said:
        return None
    return said.partition("-c: ")[2].removeprefix("line 1: ") or said.partition("warning: ")[2] or said
