"""First process of the head's and of each node's namespaces.

Run as a script with nothing but the standard library (``python -I -S nsinit.py head SPEC``): it is process 1
of its PID namespace, so that killing it kills everything that was ever started inside, and the network,
mounts and host name go with it. Nothing on the host needs to be undone.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
from typing import Any

NEW_MOUNT, NEW_UTS, NEW_IPC, NEW_PID, NEW_NET = 0x00020000, 0x04000000, 0x08000000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18

libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    encoded = [None if text is None else text.encode() for text in (source, target, kind)]
    _check(libc.mount(*encoded, ctypes.c_ulong(flags), data.encode() if data else None), f"mount {target}")


def unshare_all() -> None:
    _check(libc.unshare(NEW_MOUNT | NEW_UTS | NEW_IPC | NEW_PID | NEW_NET), "unshare")


def furnish(hostname: str, binds: dict[str, str]) -> None:
    """Give the calling process 1 its own /proc, /dev/shm, host name and bind mounts."""
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=2g")
    for target, source in binds.items():
        if os.path.exists(target):
            mount(source, target, None, MS_BIND)
    name = hostname.encode()
    _check(libc.sethostname(name, len(name)), "sethostname")


def ip(lines: list[str], inside: int | None = None) -> None:
    """Run iproute2 commands in one go, in the network of process `inside` if given."""
    command = ["ip", "-batch", "-"]
    if inside is not None:
        command = ["nsenter", f"--target={inside}", "--net", *command]
    subprocess.run(command, input="\n".join(lines) + "\n", text=True, check=True)


def start_node(node: dict[str, Any], binds: dict[str, str]) -> int:
    """Fork process 1 of one node; its pid as the head sees it."""
    receive, send = os.pipe()
    middle = os.fork()
    if middle == 0:
        unshare_all()
        pid = os.fork()
        if pid:
            os.write(send, str(pid).encode())
            os._exit(0)
        os.setsid()
        null = os.open("/dev/null", os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        os.closerange(3, 256)
        furnish(node["name"], binds)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            signal.pause()
    os.close(send)
    pid = int(os.read(receive, 32) or b"0")
    os.close(receive)
    os.waitpid(middle, 0)
    if not pid:
        raise OSError(f"the namespaces of node {node['name']} could not be made")
    link = node["link"]
    ip([f"link add {link} type veth peer name eth0 netns {pid}", f"link set {link} master br0 up"])
    ip(["link set lo up", f"addr add {node['address']}/16 dev eth0", "link set eth0 up"], inside=pid)
    return pid


def start_nodes(spec: dict[str, Any]) -> None:
    """Make the namespaces of every node of the spec and record their pids, one small file each."""
    for node in spec["nodes"]:
        pid = start_node(node, spec["binds"])
        write(os.path.join(spec["prefix"], "run", f"{node['name']}.init"), str(pid))


def write(path: str, text: str) -> None:
    with open(path + ".new", "w") as file:
        file.write(text)
    os.replace(path + ".new", path)


def head(spec: dict[str, Any]) -> None:
    """Become the head node, then wait: for the end of standard input if tethered, else for ever."""
    unshare_all()
    child = os.fork()
    if child:
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
        os.waitpid(child, 0)
        return
    host_pid = os.readlink("/proc/self")  # /proc is still the host's
    furnish(spec["hostname"], spec["binds"])
    for folder in spec["in_memory"]:
        mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
    bridge = f"addr add {spec['address']}/16 dev br0"
    ip(["link set lo up", "link add br0 type bridge", bridge, "link set br0 up"])
    start_nodes(spec)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    write(os.path.join(spec["prefix"], "run", "head.init"), host_pid)
    if not spec["tether"]:
        while True:
            signal.pause()
    while os.read(0, 64):
        pass
    os.kill(-1, signal.SIGKILL)  # the tests' process has died: end everybody else, tidy up
    if spec["remove"]:
        shutil.rmtree(spec["prefix"], ignore_errors=True)


def main() -> None:
    role, path = sys.argv[1:]
    with open(path) as file:
        spec = json.load(file)
    {"head": head, "nodes": start_nodes}[role](spec)


if __name__ == "__main__":
    main()
