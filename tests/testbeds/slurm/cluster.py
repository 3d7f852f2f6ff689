"""`Testbed`: a real Slurm cluster of pretended nodes on one machine, head node included."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Literal

from . import config as live
from .accounting import Accounting
from .config import BedConfig
from .jobs import JobCommands, PathLike
from .machine import Machine, TestbedError, make_folders, remove_folders, wait_until
from .packages import SYSTEM_PATH, why_not
from .shape_conf import shape_files
from .shapes import SiteShape

LONGEST_PREFIX = 80  # unix sockets below it: their paths have at most 107 bytes


def default_cache(prefix: Path) -> Path:
    """Beside the prefix, so that it is on the same disk and outlives the testbed."""
    return prefix.parent / f"maple-slurm-cache-{os.geteuid()}"


class Testbed(JobCommands):
    """A Slurm cluster for tests. Use as a context manager, or call `start` and `stop`.

    Everything it makes lies in namespaces of its own and below `prefix` (by default a new temporary folder).
    Unless `detach` is set it ends with the process that started it, however that process ends. Jobs run as
    root.
    """

    __test__: ClassVar[bool] = False

    def __init__(
        self,
        config: BedConfig | None = None,
        *,
        prefix: PathLike | None = None,
        detach: bool = False,
        shape: SiteShape | None = None,
        cache: PathLike | None = None,
    ) -> None:
        self.config = config or BedConfig()
        self.shape = shape
        self.detach = detach
        self._own_prefix = prefix is None
        self.prefix = Path(tempfile.mkdtemp(prefix="maple-slurm-") if prefix is None else prefix).absolute()
        if len(str(self.prefix)) > LONGEST_PREFIX:
            raise TestbedError(f"the prefix is too long for unix sockets: {self.prefix}")
        self.cache = Path(cache) if cache is not None else default_cache(self.prefix)
        self.nodes: tuple[str, ...] = () if shape else self.config.names
        self._machine = Machine(self.prefix, {name: self.config.address(name) for name in self.nodes})

    @classmethod
    def from_shape(cls, shape: SiteShape, *, prefix: PathLike | None = None) -> Testbed:
        """A full-size cluster without machines: its controller judges submissions and runs nothing."""
        return cls(prefix=prefix, shape=shape)

    @classmethod
    def attach(cls, prefix: PathLike, config: BedConfig | None = None) -> Testbed:
        """The testbed that another process started there."""
        return cls(config, prefix=prefix, detach=True)

    # -- life ---------------------------------------------------------------------------------------------

    def start(self) -> Testbed:
        accounting = self.shape is None and self.config.accounting
        reason = why_not(accounting)
        if reason is not None:
            raise TestbedError(reason)
        self.stop(keep=True)
        try:
            self._write_files()
            in_memory = [self.prefix / "db"] if accounting else []
            self._machine.start(self.detach, remove=self._own_prefix, in_memory=in_memory)
            self._start_munge()
            if accounting:
                root = self._machine.head_root
                books = Accounting(self.prefix, self.config, self.cache, root, self._output)
                books.start(self.start_controller, self._forget_controller)
            self.start_controller()
            self._start_slurmd(self.nodes)
            self.wait_idle()
        except BaseException as error:
            error.add_note(self._logged())
            self.stop()
            raise
        return self

    def stop(self, keep: bool = False) -> None:
        """End it, also one that an earlier process left. A temporary prefix goes too, except with `keep`."""
        self._machine.stop()
        if self._own_prefix and not keep:
            shutil.rmtree(self.prefix, ignore_errors=True)

    def remove(self) -> None:
        """Stop, and remove what it kept below its prefix (and the prefix, if nothing else is there)."""
        self._machine.stop()
        remove_folders(self.prefix)

    def __enter__(self) -> Testbed:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def is_up(self) -> bool:
        return self._machine.head_pid() is not None

    # -- commands -----------------------------------------------------------------------------------------

    @property
    def environment(self) -> dict[str, str]:
        """What a command on the head finds set."""
        path = os.environ.get("PATH", "")
        return {
            "SLURM_CONF": str(self.prefix / "etc/slurm.conf"),
            "MYSQL_UNIX_PORT": str(self.prefix / "db/s.sock"),
            "PATH": f"{path}:{SYSTEM_PATH}" if path else SYSTEM_PATH,
        }

    def prefix_command(
        self,
        node: str | None = None,
        cwd: PathLike | None = None,
        env: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Words that, put before a command, run it on the head or on `node`. Signals are passed on to it."""
        return self._machine.prefix_command(node, cwd, {**self.environment, **(env or {})})

    def run(
        self,
        argv: Sequence[PathLike],
        *,
        node: str | None = None,
        check: bool = True,
        timeout: float = 60,
        input: str | None = None,
        cwd: PathLike | None = None,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on the head (or on `node`) and capture its output; TestbedError if it fails."""
        whole = [*self.prefix_command(node, cwd, env), *(os.fspath(word) for word in argv)]
        stdin: dict[str, Any] = {"stdin": subprocess.DEVNULL} if input is None else {"input": input}
        done = subprocess.run(whole, capture_output=True, text=True, timeout=timeout, check=False, **stdin)
        if check and done.returncode != 0:
            words = " ".join(os.fspath(word) for word in argv)
            said = (done.stderr or done.stdout).strip()
            raise TestbedError(f"`{words}` ended with {done.returncode}: {said}")
        return done

    def address(self, node: str) -> str:
        return self._machine.addresses[node]

    # -- faults -------------------------------------------------------------------------------------------

    def kill_node(self, node: str, mark_down: bool = True) -> None:
        """Everything on the node ends at once. Slurm would notice after minutes; `mark_down` tells it now."""
        self._machine.kill_node(node)
        if mark_down:
            self.run(["scontrol", "update", f"nodename={node}", "state=down", "reason=killed"])

    def restart_node(self, node: str) -> None:
        """Boot a killed node again and wait until it can take work."""
        self._machine.restart_node(node)
        self._start_slurmd([node])
        wait_until(lambda: self.node_state(node) in {"idle", "down"}, f"{node} to answer")
        if self.node_state(node) == "down":
            self.run(["scontrol", "update", f"nodename={node}", "state=resume"])
        wait_until(lambda: self.node_state(node) == "idle", f"{node} to be idle")

    def stop_controller(self, how: Literal["stop", "kill", "hang"] = "stop") -> None:
        """`stop`: connections are refused. `kill`: the same, and it may forget its last seconds, so that it
        later gives job numbers that are in use. `hang`: it takes connections and says nothing.
        """
        signal = {"stop": "-TERM", "kill": "-KILL", "hang": "-STOP"}[how]
        pid = self._controller_pid()
        self.run(["kill", signal, pid])
        if how != "hang":
            wait_until(lambda: self.run(["kill", "-0", pid], check=False).returncode != 0, "slurmctld to end")
            (self.prefix / "run/slurmctld.pid").unlink(missing_ok=True)

    def start_controller(self) -> None:
        """Start the controller, or let a hanging one go on; it knows the jobs it knew."""
        if (self.prefix / "run/slurmctld.pid").exists():
            woken = self.run(["kill", "-CONT", self._controller_pid()], check=False)
            if woken.returncode == 0:
                return
        self.run(["slurmctld"])
        wait_until(self.answers, "slurmctld to answer, see log/slurmctld.log", every=0.02)

    def answers(self) -> bool:
        """Whether the controller answers within a few seconds."""
        try:
            return self.run(["scontrol", "ping"], check=False, timeout=5).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    # -- inside -------------------------------------------------------------------------------------------

    def _write_files(self) -> None:
        make_folders(self.prefix)
        if self.shape is not None:
            files = shape_files(self.shape, self.prefix)
        else:
            files = {
                "slurm.conf": live.slurm_conf(self.config, self.prefix),
                "gres.conf": live.gres_conf(self.config, self.prefix),
            }
            for index in range(self.config.gpus):
                (self.prefix / f"dev/nvidia{index}").symlink_to("/dev/null")
            files |= live.accounts(self.config, self.prefix)
        files["hosts"] = live.hosts(None if self.shape else self.config)
        for name, text in files.items():
            (self.prefix / "etc" / name).write_text(text)
        for node in self.nodes:
            (self.prefix / "spool" / node).mkdir()
        for name, uid in self.config.users.items():
            home = self.prefix / "home" / name
            home.mkdir(parents=True)
            os.chown(home, uid, uid)
        if self.config.users:
            self.prefix.chmod(0o755)  # people who are not root submit to it

    def _start_munge(self) -> None:
        """munged with a key and a socket of its own; it wants their folders closed to others."""
        folder = self.prefix / "run"
        key = self.prefix / "etc/munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        self.run(
            [
                "munged",
                "--force",
                f"--key-file={key}",
                f"--socket={self.prefix / live.MUNGE_SOCKET}",
                f"--pid-file={folder / 'munged.pid'}",
                f"--log-file={self.prefix / 'log/munged.log'}",
                f"--seed-file={folder / 'munged.seed'}",
            ]
        )

    def _start_slurmd(self, nodes: Sequence[str]) -> None:
        conf = self.prefix / "etc/slurm.conf"
        started = [
            subprocess.Popen([*self.prefix_command(node, "/"), "slurmd", "-N", node, "-f", str(conf)]) for node in nodes
        ]
        for node, process in zip(nodes, started, strict=True):
            if process.wait(timeout=30) != 0:
                log = self.prefix / f"log/slurmd.{node}.log"
                raise TestbedError(f"slurmd on {node} does not start, see {log}")

    def _controller_pid(self) -> str:
        return (self.prefix / "run/slurmctld.pid").read_text().strip()

    def _forget_controller(self) -> None:
        """End the controller that helped to make the accounting image, and what it knew."""
        self.stop_controller("kill")
        shutil.rmtree(self.prefix / "state")
        (self.prefix / "state").mkdir()

    def _logged(self) -> str:
        """The end of each log."""
        logs = [path for path in sorted((self.prefix / "log").glob("*.log")) if path.stat().st_size]
        return "\n".join(f"{path.name}: {path.read_text(errors='replace')[-1000:]}" for path in logs)

    def _output(self, argv: Sequence[str], *, input: str | None = None, check: bool = True) -> str:
        done = self.run(argv, input=input, check=check, cwd="/", timeout=120)
        return done.stdout + done.stderr
