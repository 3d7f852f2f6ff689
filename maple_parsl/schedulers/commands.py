"""The one place where Maple runs a scheduler's command."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from maple_parsl.errors import SchedulerError
from maple_parsl.schedulers.environment import submission_environment

DEADLINE = 30.0
ARGUMENT_BYTES = 60_000  # per command line, well below every system's limit


class NotStartedError(SchedulerError):
    """The command never ran, so nothing can have come of it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """How a command ended, and what it said."""

    argv: tuple[str, ...]
    code: int
    out: str
    err: str

    @property
    def first_line(self) -> str:
        """The first line of its complaint, or of its output."""
        lines = [line.strip() for line in f"{self.err}\n{self.out}".splitlines() if line.strip()]
        return lines[0][:300] if lines else "(no output)"

    @property
    def complaint(self) -> str:
        """Everything it said that explains a failure, on one line."""
        return " ".join((self.err.strip() or self.out.strip()).split())[:600] or f"(no output, exit code {self.code})"


class Runner(Protocol):
    """What :func:`run` is."""

    def __call__(self, argv: Sequence[str], *, deadline: float = DEADLINE) -> Answer:
        """Run a command to its end."""


def run(
    argv: Sequence[str],
    *,
    deadline: float = DEADLINE,
    locale: str | None = "C",
    environ: Mapping[str, str] | None = None,
    here: bool = False,
) -> Answer:
    """Run a command to its end; its exit code is for the caller to judge.

    Args:
        argv: the words; no shell reads them.
        deadline: seconds after which it is killed.
        locale: language of its output; None leaves the user's, for a command whose environment a job inherits.
        environ: the environment to clean and use; this process's own by default.
        here: it starts a job of this machine, see :func:`submission_environment`.

    Raises:
        NotStartedError: the command is missing or cannot be run.
        SchedulerError: it did not end in time.
    """
    clean = submission_environment(os.environ if environ is None else environ, here=here)
    if locale is not None:
        clean = {name: value for name, value in clean.items() if not name.startswith("LC_")}
        clean |= {"LC_ALL": locale, "LANG": locale}
    path = shutil.which(argv[0], path=clean.get("PATH"))
    if path is None:
        raise NotStartedError(
            f"the command {argv[0]} is not on PATH; run this on a login node of the site, or load the module that"
            " brings the scheduler's commands"
        )
    try:
        process = subprocess.Popen(
            [path, *argv[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=clean,
            start_new_session=True,
        )
    except OSError as error:
        raise NotStartedError(f"{path} cannot be run: {error.strerror}") from None
    try:
        out, err = process.communicate(timeout=deadline)
    except subprocess.TimeoutExpired:
        raise SchedulerError(
            f"{argv[0]} did not answer within {deadline:g} s; the scheduler may be overloaded or down, try again later"
        ) from None
    finally:
        if process.returncode is None:
            _kill(process)
    return Answer(tuple(argv), process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(5)


def batches(words: Sequence[str], separator: int = 1) -> list[list[str]]:
    """The words in as few groups as fit on a command line, without repetition."""
    groups: list[list[str]] = []
    size = ARGUMENT_BYTES
    for word in dict.fromkeys(words):
        length = len(word.encode()) + separator
        if size + length > ARGUMENT_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(word)
        size += length
    return groups
