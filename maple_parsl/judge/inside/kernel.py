"""The few calls to the Linux kernel that Python 3.11 does not have."""

from __future__ import annotations

import ctypes
import os
import platform

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
RDONLY, NOSUID, NODEV, REMOUNT, BIND, REC, PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "ppc64le": 203}
_DETACH = 2
_SET_DEATH_SIGNAL, _SET_DUMPABLE, _SET_SECUREBITS, _SET_NO_NEW_PRIVS = 1, 4, 28, 38
_NO_ROOT_POWERS = 0b11  # SECBIT_NOROOT and its lock: uid 0 gains nothing by exec
_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    _checked(_libc.unshare(flags), "unshare")


def setns(fd: int) -> None:
    _checked(_libc.setns(fd, 0), "setns")


def mount(source: str, target: str, kind: str | None = None, flags: int = 0, options: str | None = None) -> None:
    words = [word.encode() if word is not None else None for word in (source, target, kind, options)]
    result = _libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3])
    _checked(result, f"mount {target}")


def bind(source: str, target: str, readonly: bool = True) -> None:
    """The same files at another place; the flags a parent namespace has locked are kept."""
    mount(source, target, None, BIND | REC)
    if readonly:
        kept = os.statvfs(target).f_flag & ~os.ST_RDONLY
        mount("none", target, None, BIND | REMOUNT | RDONLY | kept)


def change_root(folder: str) -> None:
    """Make a folder, which must be a mount, the root, and let go of the old one."""
    os.makedirs(f"{folder}/old", exist_ok=True)
    number = _PIVOT_ROOT.get(platform.machine())
    if number is None:
        raise OSError(f"pivot_root on {platform.machine()} is not known here")
    _checked(_libc.syscall(number, folder.encode(), f"{folder}/old".encode()), "pivot_root")
    os.chdir("/")
    _checked(_libc.umount2(b"/old", _DETACH), "umount")
    os.rmdir("/old")


def become(uid: int, gid: int) -> None:
    """Leave root for good."""
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    _libc.prctl(_SET_DUMPABLE, 1, 0, 0, 0)  # else /proc/self belongs to root, and the maps cannot be written


def die_with_parent() -> None:
    """SIGKILL when the parent ends; the end of a namespace's first process ends all others in it."""
    _checked(_libc.prctl(_SET_DEATH_SIGNAL, 9, 0, 0, 0), "parent's death signal")


def without_privileges() -> None:
    """What is executed from here on has no capability, whatever its user id, and cannot gain one."""
    _checked(_libc.prctl(_SET_SECUREBITS, _NO_ROOT_POWERS, 0, 0, 0), "securebits")
    _checked(_libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
