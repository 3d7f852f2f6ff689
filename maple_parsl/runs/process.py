"""Processes as they are told apart later: a pid alone may be somebody else's by then."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_BOOT = "/proc/sys/kernel/random/boot_id"
_SENDER = re.compile(r"(^|[/\s])(sbatch|qsub)(\s|$)")


def identity(pid: int | None = None) -> dict[str, Any]:
    """What identifies a process on this machine: host, boot, pid name space, pid and start (clock ticks)."""
    chosen = os.getpid() if pid is None else pid
    return {
        "pid": chosen,
        "start": _start(chosen),
        "host": socket.gethostname(),
        "boot": _text(_BOOT),
        "space": _space(),
    }


def same_machine(who: dict[str, Any]) -> bool:
    """Whether processes of that machine, as recorded, can be seen from here."""
    return bool(
        who.get("host") == socket.gethostname() and who.get("boot") == _text(_BOOT) and who.get("space") == _space()
    )


def alive(who: dict[str, Any]) -> bool | None:
    """Whether a recorded process still runs; None where that cannot be told from this machine."""
    pid = who.get("pid")
    if not isinstance(pid, int):
        return None
    if who.get("host") == socket.gethostname() and who.get("boot") not in (None, "", _text(_BOOT)):
        return False  # the machine was restarted since
    if not same_machine(who):
        return None
    return _start(pid) == who.get("start") is not None


def sender_of(run_id: str) -> int | None:
    """The pid of a submission command that still carries this run, if one runs on this machine."""
    for pid in _pids():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if run_id in words and _SENDER.search(words) and pid != os.getpid():
            return pid
    return None


def _pids() -> Iterator[int]:
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    yield from (int(name) for name in names if name.isdecimal())


def _start(pid: int) -> int | None:
    """When the process began, in clock ticks after boot; None when there is none, or it is a zombie."""
    stat = _text(f"/proc/{pid}/stat")
    fields = stat.rpartition(")")[2].split()
    return int(fields[19]) if len(fields) > 19 and fields[0] not in ("Z", "X") else None


def _space() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""
