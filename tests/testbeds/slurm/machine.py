"""The namespaces of a testbed: made by one small process each, entered by pid, gone when that process is."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .config import HEAD, HEAD_ADDRESS
from .packages import SYSTEM_PATH

HERE = Path(__file__).parent
PYTHON = [sys.executable, "-I", "-S"]


class TestbedError(RuntimeError):
    """The testbed, or a command in it, did not do what it should."""

    __test__ = False


def wait_until(test: Callable[[], bool], what: str, timeout: float = 30, every: float = 0.05) -> None:
    """Wait until `test()` holds; TestbedError after `timeout` seconds."""
    end = time.monotonic() + timeout
    while not test():
        if time.monotonic() > end:
            raise TestbedError(f"waited {timeout:g} s in vain: {what}")
        time.sleep(every)


def birth(pid: int) -> str | None:
    """When a process started (clock ticks): together with the pid this names a process for good."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


@dataclass
class Machine:
    """Head and node namespaces below one prefix. `addresses` is node name -> address."""

    prefix: Path
    addresses: Mapping[str, str] = field(default_factory=dict)
    _keeper: subprocess.Popen[bytes] | None = None
    _links: int = 0

    @property
    def record(self) -> Path:
        return self.prefix / "run/machine.json"

    def head_pid(self) -> int | None:
        """The host's pid of the head's first process, if it runs."""
        try:
            known = json.loads(self.record.read_text())
        except (OSError, ValueError):
            return None
        return known["pid"] if birth(known["pid"]) == known["birth"] else None

    @property
    def head_root(self) -> Path:
        """The head's file system, seen from the host."""
        return Path(f"/proc/{self.head_pid()}/root")

    def node_pid(self, node: str) -> int | None:
        try:
            return int((self.prefix / f"run/{node}.init").read_text())
        except OSError:
            return None

    def start(self, detach: bool, remove: bool, in_memory: Sequence[Path] = ()) -> None:
        """Make the namespaces. Unless detached they end with this process, even by kill -9.

        The folders `in_memory` become a tmpfs that only the head sees (from here: below `head_root`).
        """
        spec = self._spec(list(self.addresses)) | {
            "hostname": HEAD,
            "address": HEAD_ADDRESS,
            "tether": not detach,
            "remove": remove,
            "in_memory": [str(folder) for folder in in_memory],
        }
        marker = self.prefix / "run/head.init"
        marker.unlink(missing_ok=True)
        log = self.prefix / "log/namespaces.log"
        with log.open("wb") as out:
            self._keeper = subprocess.Popen(
                [*PYTHON, str(HERE / "nsinit.py"), "head", self._write(spec)],
                stdin=subprocess.DEVNULL if detach else subprocess.PIPE,
                stdout=out,
                stderr=out,
                start_new_session=True,
                env={"PATH": SYSTEM_PATH},
                cwd="/",
            )
        keeper = self._keeper
        with contextlib.suppress(TestbedError):
            wait_until(lambda: marker.exists() or keeper.poll() is not None, "namespaces", 30, 0.005)
        if not marker.exists():
            raise TestbedError(f"no namespaces: {log.read_text().strip()[-600:]}")
        pid = int(marker.read_text())
        self.record.write_text(json.dumps({"pid": pid, "birth": birth(pid)}))

    def stop(self) -> None:
        """End every process of the testbed; what they had mounted or linked goes with them."""
        pid = self.head_pid()
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            wait_until(lambda: birth(pid) is None, "the testbed's processes to end", 30, 0.01)
        if self._keeper is not None:
            if self._keeper.poll() is None and pid is None:
                self._keeper.kill()
            self._keeper.wait(timeout=30)
            if self._keeper.stdin is not None:
                self._keeper.stdin.close()
            self._keeper = None
        self.record.unlink(missing_ok=True)

    def prefix_command(
        self,
        node: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> list[str]:
        """The words to put before a command so that it runs on the head, or on `node`."""
        head = self.head_pid()
        if head is None:
            raise TestbedError(f"no testbed is up in {self.prefix}")
        inside = 0 if node is None else self.node_pid(node)
        if inside is None:
            raise TestbedError(f"node {node} is not up")
        words = [f"{name}={value}" for name, value in (env or {}).items()]
        return [*PYTHON, str(HERE / "enter.py"), str(head), str(inside), str(cwd or Path.cwd()), *words]

    def kill_node(self, node: str) -> None:
        """Pull the plug: everything on the node ends at once."""
        pid = self.node_pid(node)
        if pid is None:
            return
        self._in_head(["kill", "-9", str(pid)])
        wait_until(lambda: self._in_head(["kill", "-0", str(pid)]).returncode != 0, f"{node} to end")
        (self.prefix / f"run/{node}.init").unlink()

    def restart_node(self, node: str) -> None:
        self.kill_node(node)
        done = self._in_head([*PYTHON, str(HERE / "nsinit.py"), "nodes", self._write(self._spec([node]))])
        if done.returncode != 0:
            raise TestbedError(f"node {node} could not be made: {done.stderr.strip()}")

    def _in_head(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        whole = [*self.prefix_command(cwd="/", env={"PATH": SYSTEM_PATH}), *command]
        return subprocess.run(whole, capture_output=True, text=True, check=False)

    def _spec(self, nodes: Sequence[str]) -> dict[str, Any]:
        """A name for each link that was never used before: a killed node's link may linger for a moment."""
        links = {node: f"v{os.getpid() % 100000}x{self._links + index}" for index, node in enumerate(nodes)}
        self._links += len(nodes)
        etc = self.prefix / "etc"
        own = {f"/etc/{name}": str(etc / name) for name in ("passwd", "group") if (etc / name).exists()}
        return {
            "prefix": str(self.prefix),
            "binds": {"/etc/hosts": str(etc / "hosts"), "/etc/slurm": str(etc), **own},
            "nodes": [{"name": node, "address": self.addresses[node], "link": links[node]} for node in nodes],
        }

    def _write(self, spec: Mapping[str, Any]) -> str:
        path = self.prefix / "run/spec.json"
        path.write_text(json.dumps(spec))
        return str(path)


FOLDERS = ("etc", "log", "run", "spool", "state", "dev", "db", "home", "broker", "client")


MARKER = ".maple-slurm-testbed"


def make_folders(prefix: Path) -> None:
    """The empty folders of a new testbed, in an empty folder or in place of an earlier testbed."""
    if prefix.exists() and any(prefix.iterdir()) and not (prefix / MARKER).exists():
        raise TestbedError(f"{prefix} has files in it that no testbed made; choose another folder")
    remove_folders(prefix)
    prefix.mkdir(parents=True, exist_ok=True)
    (prefix / MARKER).touch()
    for name in FOLDERS:
        (prefix / name).mkdir()


def remove_folders(prefix: Path) -> None:
    """Remove a testbed's files; nothing where no testbed was."""
    if not (prefix / MARKER).exists():
        return
    (prefix / MARKER).unlink()
    for name in FOLDERS:
        shutil.rmtree(prefix / name, ignore_errors=True)
    with contextlib.suppress(OSError):
        prefix.rmdir()
