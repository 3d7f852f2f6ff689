"""What bash itself says of set-up lines, before they stop a job that waited for a day."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable

from maple_parsl.errors import RequestError


def refuse_broken(lines: Iterable[str]) -> None:
    """Ask ``bash -n`` about each line; nothing is run. Without a bash here the lines are taken as they are.

    Raises:
        RequestError: a line is not a whole shell command; bash's own words are in the message.
    """
    bash = shutil.which("bash")
    for line in lines if bash else ():
        try:
            done = subprocess.run(
                [str(bash), "-n"], input=line.encode() + b"\n", capture_output=True, timeout=10, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().split("\n")[0].rpartition(": ")[2]
            raise RequestError(f"setup line {line!r} is not a whole shell line: {said}")
