"""What is known of the pretended cluster's processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Client:
    """A stand-in command that was called and waits for its answer.

    Attributes:
        argv: name of the command, without its folder, and its arguments. node: index of the node it runs on.
        task: the launched task it belongs to; None in the batch shell.
    """

    pid: int
    argv: list[str]
    env: dict[str, str]
    cwd: str
    node: int
    task: Task | None


@dataclass
class Task:
    """A process that a stand-in started on a node.

    Attributes:
        command: what started it. rank, local: its place in its step. cores: physical cores it is bound to, None
            where it is not bound. devices: devices of the node it may use, in its own order; None for all.
        parent: the task whose process started the step. container: whether it runs in a container.
    """

    node: int
    argv: list[str]
    env: dict[str, str]
    cwd: str
    command: str
    step: int = -1
    rank: int | None = None
    local: int | None = None
    size: int | None = None
    cores: list[int] | None = None
    devices: list[int] | None = None
    parent: Task | None = None
    pid: int = 0

    def chain(self) -> list[str]:
        """The launchers that led here, outermost first."""
        above = self.parent.chain() if self.parent else []
        return [*above, self.command]

    def inherited(self, what: str) -> Any:
        """The cores or devices of this task, or of the one around it."""
        value = getattr(self, what)
        return value if value is not None or self.parent is None else self.parent.inherited(what)


@dataclass
class Step:
    """Tasks started together, and the stand-in that waits for them."""

    number: int
    client: Client | None
    tasks: list[Task] = field(default_factory=list)
    running: int = 0
    code: int = 0


@dataclass
class Refusal(Exception):
    """What a real command would print before it ended with an error."""

    words: str
    code: int = 1

    def __str__(self) -> str:
        return self.words
