"""What every transport does, and the one that runs a Python and talks to it through a pipe."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from maple_parsl import remote
from maple_parsl.errors import TransportError

T = TypeVar("T")
DEADLINE = 60.0
LARGEST_ANSWER = 16 << 20
# Reads the program and the question from standard input, so that neither stands on a command line.
_BOOT = "import sys,json;d=json.load(sys.stdin);n={'__name__':'maple_site'};exec(compile(d[0],'maple_site','exec'),n);"
_BOOT += "sys.stdout.write('\\n@maple@'+n['entry'](d[1])+'\\n')"


class Transport(Protocol):
    """A way to a site."""

    def ready(self) -> None:
        """Pass when the way is open; nothing is sent to the site.

        Raises:
            TransportError: it is not; the message says how to open it.
        """

    def call(self, op: str, *, deadline: float = DEADLINE, **asked: Any) -> dict[str, Any]:
        """Do one of :data:`maple_parsl.remote.operations.OPERATIONS` there.

        Args:
            deadline: seconds after which no answer is waited for.

        Raises:
            TransportError: no answer in time, or the site refused; ``certain`` tells whether nothing happened.
        """


def question(op: str, asked: dict[str, Any]) -> str:
    """What is sent."""
    return json.dumps({"op": op, **asked})


def opened(text: Any, op: str) -> dict[str, Any]:
    """The value in an answer, which must be what an answer is.

    Raises:
        TransportError: it is something else, or says that the site refused.
    """
    try:
        if not isinstance(text, str) or len(text) > LARGEST_ANSWER:
            raise ValueError("it is no text of a possible length")
        answer = json.loads(text)
        good = answer["ok"]
        value = answer["value"] if good else str(answer["why"])
        if not isinstance(good, bool) or (good and not isinstance(value, dict)):
            raise ValueError("it has another shape")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise TransportError(f"the site's answer to {op!r} cannot be read: {error}") from None
    if not good:
        raise TransportError(f"the site refused: {value}", certain=True)
    assert isinstance(value, dict)
    return value


def within(seconds: float, work: Callable[[], T]) -> T:
    """The result of something that may hang; TimeoutError when it does (it is then left to itself)."""
    done: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="maple-call", daemon=True)
    thread.start()
    thread.join(max(0.0, seconds))
    if failed:
        raise failed[0]
    if not done:
        raise TimeoutError
    return done[0]


class Here:
    """Another Python on this machine.

    Args:
        python: the interpreter.
    """

    def __init__(self, python: str = "python3") -> None:
        self._python = python

    def ready(self) -> None:
        """Always: this machine is here."""

    def call(self, op: str, *, deadline: float = DEADLINE, **asked: Any) -> dict[str, Any]:
        """See :class:`Transport`."""
        return piped([self._python, "-c", _BOOT], op, asked, deadline, "this machine")


def boot_command(python: str) -> str:
    """The words for a shell elsewhere that start the program there."""
    import shlex

    return f"{shlex.quote(python)} -c {shlex.quote(_BOOT)}"


def piped(argv: Sequence[str], op: str, asked: dict[str, Any], deadline: float, where: str) -> dict[str, Any]:
    """Run a command that reads program and question from standard input and prints the answer."""
    sent = json.dumps([remote.source(), question(op, asked)])
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise TransportError(f"{argv[0]} cannot be run: {error.strerror}", certain=True) from None
    try:
        out, err = process.communicate(sent, timeout=deadline)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise TransportError(
            f"no answer from {where} within {deadline:g} s; what was asked may have happened, ask again"
        ) from None
    before, mark, answer = out.rpartition("\n@maple@")
    if not mark:
        words = " ".join((err or before).split())[-400:] or f"exit code {process.returncode}"
        raise TransportError(f"{where} did not run Maple's program: {words}")
    return opened(answer.strip(), op)
