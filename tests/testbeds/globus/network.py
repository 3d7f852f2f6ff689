"""Run a command in the network of a process: ``python -I -S network.py PID COMMAND...``. Standard library only."""

from __future__ import annotations

import ctypes
import os
import sys

libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    pid, *command = sys.argv[1:]
    space = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    if libc.setns(space, 0) != 0:
        sys.exit(f"network: {os.strerror(ctypes.get_errno())}")
    os.close(space)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
