"""The pretended cluster's first process: takes calls of the stand-in commands, starts tasks, and notes everything."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from typing import Any

from maple_parsl.judge.inside import kernel
from maple_parsl.judge.inside.enter import JUDGE
from maple_parsl.judge.inside.model import Client, Refusal, Step, Task

# Asks, and waits for the exit code. Two forks; everything else is read from /proc by the first process.
# The streams are kept aside, as the redirections below take 0 and 1 for a moment.
RELAY = f"""#!/bin/sh
exec 7<&0 8>&1 9>&2
mkfifo {JUDGE}/reply/$$ && echo $$ >{JUDGE}/ask && read -r code <{JUDGE}/reply/$$
exit "${{code:-1}}"
"""
_KEPT = 7
_QUIET = 1.0  # seconds without any event after which those who wait for others wait in vain
_MOST_PROCESSES = 3000

Handler = Callable[["Cluster", Client], int | None]


class Cluster:
    """Nodes, running tasks, and the record."""

    def __init__(self, world: dict[str, Any], spaces: list[tuple[int, int]], handlers: dict[str, Handler]) -> None:
        self.world, self.spaces, self.handlers = world, spaces, handlers
        self.nodes: list[dict[str, Any]] = world["nodes"]
        self.tasks: dict[int, Task] = {}
        self.steps: list[Step] = []
        self.processes: list[dict[str, Any]] = []
        self.notes: list[dict[str, Any]] = []
        self.waiting: dict[str, list[tuple[Client, Any]]] = {}
        self.stuck: Callable[[], None] | None = None
        self._replies: list[tuple[int, int]] = []
        self._owners: dict[int, Step] = {}
        self._ask = os.open(f"{JUDGE}/ask", os.O_RDWR | os.O_NONBLOCK)
        self._null = os.open("/dev/null", os.O_RDWR)

    # --- what handlers use

    def start(self, client: Client | None, tasks: list[Task], output: str | None = None) -> Step:
        """Start tasks; the client is answered with the worst exit code when all have ended."""
        if len(self.steps) + len(tasks) > _MOST_PROCESSES:
            raise Refusal("too many processes for one script")
        step = Step(len(self.steps), client, tasks, len(tasks))
        self.steps.append(step)
        for task in tasks:
            task.step, task.parent = step.number, client.task if client else None
            task.pid = self._spawn(task, client, output)
            self.tasks[task.pid], self._owners[task.pid] = task, step
        return step

    def say(self, client: Client, text: str, stream: int = 1) -> None:
        """Print for a stand-in command."""
        try:
            target = os.open(f"/proc/{client.pid}/fd/{stream + _KEPT}", os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)
        except OSError:
            return
        try:
            os.write(target, text.encode("utf-8", "surrogateescape"))
        except OSError:
            pass
        finally:
            os.close(target)

    def note(self, kind: str, client: Client, **more: Any) -> None:
        """Put something on record that a stand-in command was asked for."""
        self.notes.append({"kind": kind, "argv": client.argv, "node": client.node, **more})

    def process(self, client: Client, program: str, arguments: list[str]) -> int:
        """Put a process of the user's program on record; it ends at once and well."""
        task = client.task
        self.processes.append(
            {
                "program": program,
                "arguments": arguments,
                "argv": client.argv,
                "env": client.env,
                "cwd": client.cwd,
                "node": client.node,
                "chain": task.chain() if task else [],
                "step": task.step if task else None,
                "task_rank": task.rank if task else None,
                "cores": task.inherited("cores") if task else None,
                "devices": task.inherited("devices") if task else None,
            }
        )
        return 0

    def node_named(self, name: str, here: int) -> int | None:
        """The node a name or address means to a process on node ``here``."""
        if name in ("localhost", "127.0.0.1", "::1", "0.0.0.0", ""):
            return here
        for index, node in enumerate(self.nodes):
            if name in (node["name"], node["fqdn"], node["address"], *node["aliases"]):
                return index
        return None

    def reply(self, client: Client, code: int) -> None:
        self._replies.append((client.pid, code))

    # --- the loop

    def run(self, seconds: float) -> tuple[int | None, bool]:
        """Run until the batch script ends or time is up; its exit code, and whether time was up."""
        batch = self.world["batch"]
        task = Task(0, batch["argv"], batch["env"], batch["cwd"], "batch", cores=None)
        self.tasks_batch = self._spawn(task, None, batch["output"])
        deadline, last = time.monotonic() + seconds, time.monotonic()
        wake, told = os.pipe2(os.O_NONBLOCK)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(told, warn_on_full_buffer=False)
        buffer = b""
        while time.monotonic() < deadline:
            ready = select.select([self._ask, wake], [], [], 0.002 if self._replies else 0.25)[0]
            if wake in ready:
                os.read(wake, 4096)
            ended, any_ended = self._reap()
            if ended is not None:
                return ended, False
            if self._ask in ready:
                buffer += os.read(self._ask, 65536)
                *lines, buffer = buffer.split(b"\n")
                for line in lines:
                    if line.isdigit():
                        self._serve(int(line))
            self._answer()
            now = time.monotonic()
            if ready or any_ended:
                last = now
            elif self.waiting and now - last > _QUIET and self.stuck:
                self.stuck()
                last = now
        return None, True

    def _reap(self) -> tuple[int | None, bool]:
        some = False
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return None, some
            if pid == 0:
                return None, some
            some = True
            code = os.waitstatus_to_exitcode(status)
            code = code if code >= 0 else 128 - code
            if pid == self.tasks_batch:
                return code, True
            step = self._owners.pop(pid, None)
            if step is None:
                continue
            step.code, step.running = max(step.code, code), step.running - 1
            if step.running == 0 and step.client:
                self.reply(step.client, step.code)

    def _serve(self, pid: int) -> None:
        client = self._client(pid)
        if client is None:
            return
        handler = self.handlers.get(client.argv[0])
        try:
            code = handler(self, client) if handler else self.process(client, client.argv[0], client.argv[1:])
        except Refusal as refusal:
            self.say(client, f"{client.argv[0]}: error: {refusal.words}\n", 2)
            self.note("refused", client, words=refusal.words)
            code = refusal.code
        except OSError as error:
            self.note("refused", client, words=f"the pretended command failed: {error}")
            code = 1
        if code is not None:
            self.reply(client, code)

    def _client(self, pid: int) -> Client | None:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")[1:-1]
            with open(f"/proc/{pid}/environ", "rb") as file:
                pairs = [item.partition(b"=") for item in file.read().split(b"\0") if b"=" in item]
            cwd = os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            return None
        argv = [word.decode("utf-8", "surrogateescape") for word in words]
        argv[0] = os.path.basename(argv[0])
        env = {
            key.decode("utf-8", "surrogateescape"): value.decode("utf-8", "surrogateescape") for key, _, value in pairs
        }
        task = self._task_of(pid)
        return Client(pid, argv, env, cwd, task.node if task else 0, task)

    def _task_of(self, pid: int) -> Task | None:
        """The task a process belongs to: that of its session, or of an ancestor where it made its own."""
        while pid > 1:
            try:
                with open(f"/proc/{pid}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                return None
            session = int(fields[3])
            if session in self.tasks:
                return self.tasks[session]
            if session == self.tasks_batch:
                return None
            pid = int(fields[1])
        return None

    def _answer(self) -> None:
        left = []
        for pid, code in self._replies:
            path = f"{JUDGE}/reply/{pid}"
            try:
                fifo = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                if os.path.exists(f"/proc/{pid}"):
                    left.append((pid, code))
                continue
            os.write(fifo, f"{code}\n".encode())
            os.close(fifo)
            os.unlink(path)
        self._replies = left

    def _spawn(self, task: Task, client: Client | None, output: str | None) -> int:
        child = os.fork()
        if child:
            return child
        try:
            os.setsid()
            streams = [self._input(client), *self._outputs(client, output)]
            if self.spaces:
                for space in self.spaces[task.node]:
                    kernel.setns(space)
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            os.chdir(task.cwd)
            if self.spaces:
                kernel.without_privileges()
            os.execvpe(task.argv[0], task.argv, task.env)
        except OSError as error:
            os.write(2, f"{task.command}: {task.argv[0]}: {error.strerror}\n".encode("utf-8", "replace"))
        finally:
            os._exit(127)

    def _input(self, client: Client | None) -> int:
        """What is waiting on the caller's standard input (a here-document); never a wait for more."""
        if client is None:
            return self._null
        try:
            source = os.open(f"/proc/{client.pid}/fd/{_KEPT}", os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            return self._null
        return source

    def _outputs(self, client: Client | None, output: str | None) -> list[int]:
        append = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        if output is not None:
            opened = os.open(output, append, 0o644)
            return [opened, opened]
        assert client is not None
        return [os.open(f"/proc/{client.pid}/fd/{number + _KEPT}", os.O_WRONLY | os.O_APPEND) for number in (1, 2)]
