"""Into the sandbox: own namespaces, a root file system of its own, no way back."""

from __future__ import annotations

import os
import signal
import socket
from typing import Any

from maple_parsl.judge.inside import kernel

JUDGE = "/judge"
_NOBODY = 65534
_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64")
_DEVICES = ("null", "zero", "full", "random", "urandom")
_NEW_ROOT = "/tmp"  # exists everywhere; hidden by the new root's own file system


def isolate() -> int:
    """Enter new namespaces as an unprivileged user; the child that returns 0 is their first process.

    Returns the child's process id to the parent. Raises OSError where the system allows no namespaces.
    """
    if os.getuid() == 0:
        kernel.become(_NOBODY, _NOBODY)
    uid, gid = os.getuid(), os.getgid()
    flags = kernel.NEWUSER | kernel.NEWNS | kernel.NEWUTS | kernel.NEWIPC | kernel.NEWPID | kernel.NEWNET
    kernel.unshare(flags)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="utf-8") as file:
            file.write(text)
    return os.fork()


def build_root(world: dict[str, Any]) -> None:
    """A root with the system's programs, read-only, and nothing else of this machine."""
    root = _NEW_ROOT
    kernel.mount("none", "/", None, kernel.REC | kernel.PRIVATE)
    links = {name: os.readlink(f"/{name}") for name in _SYSTEM if os.path.islink(f"/{name}")}
    folders = ["usr", *(name for name in _SYSTEM if name not in links and os.path.isdir(f"/{name}"))]
    kernel.mount("judge", root, "tmpfs", kernel.NOSUID | kernel.NODEV, f"size={world['megabytes']}m,mode=755")
    for name in folders:
        os.mkdir(f"{root}/{name}")
    for name, target in links.items():
        os.symlink(target, f"{root}/{name}")
    # The new root hides /tmp only; every source below is outside of it.
    for name in folders:
        kernel.bind(f"/{name}", f"{root}/{name}")
    os.mkdir(f"{root}/etc")
    for name in ("alternatives", "ld.so.cache"):
        if os.path.exists(f"/etc/{name}"):
            _place(f"{root}/etc/{name}", os.path.isdir(f"/etc/{name}"))
            kernel.bind(f"/etc/{name}", f"{root}/etc/{name}")
    os.mkdir(f"{root}/proc")
    kernel.mount("proc", f"{root}/proc", "proc", kernel.NOSUID | kernel.NODEV)
    _devices(root)
    os.mkdir(f"{root}/tmp")
    os.chmod(f"{root}/tmp", 0o1777)
    kernel.change_root(root)
    write_files(world["files"])
    lay_out()
    with open("/proc/sys/user/max_user_namespaces", "w", encoding="utf-8") as file:
        file.write("0")
    for name in ("/", "/etc", "/dev"):
        os.chmod(name, 0o555)


def _place(path: str, folder: bool) -> None:
    if folder:
        os.mkdir(path)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))


def _devices(root: str) -> None:
    os.mkdir(f"{root}/dev")
    for name in _DEVICES:
        _place(f"{root}/dev/{name}", False)
        kernel.bind(f"/dev/{name}", f"{root}/dev/{name}", readonly=False)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(target, f"{root}/dev/{name}")
    os.mkdir(f"{root}/dev/shm")


def write_files(files: dict[str, str]) -> None:
    """Files of the world; a path that ends in a slash is a folder, and a text that starts with #! a program."""
    for path, text in files.items():
        if path.endswith("/"):
            os.makedirs(path, exist_ok=True)
            continue
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(text)
        if text.startswith("#!"):
            os.chmod(path, 0o755)


def lay_out() -> None:
    """The place where stand-in commands and the pretended cluster meet."""
    os.makedirs(f"{JUDGE}/reply", exist_ok=True)
    os.mkfifo(f"{JUDGE}/ask")


def make_nodes(names: list[str]) -> list[tuple[int, int]]:
    """One host name, /tmp and /dev/shm for each node; the namespaces of each, as file descriptors."""
    found = []
    for name in names:
        ready, told = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                kernel.unshare(kernel.NEWUTS | kernel.NEWNS)
                socket.sethostname(name)
                for place in ("/tmp", "/dev/shm"):
                    kernel.mount("node", place, "tmpfs", kernel.NOSUID | kernel.NODEV, "size=16m,mode=1777")
                os.write(told, b"1")
                signal.pause()
            finally:
                os._exit(1)
        os.close(told)
        if os.read(ready, 1) != b"1":
            raise OSError(f"node {name} could not be set up")
        os.close(ready)
        spaces = [os.open(f"/proc/{child}/ns/{kind}", os.O_RDONLY) for kind in ("uts", "mnt")]
        found.append((spaces[0], spaces[1]))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return found
