"""Sweeps and chains: several runs under one id."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from maple_parsl.errors import MapleError, RequestError, UnknownNameError
from maple_parsl.runs import files
from maple_parsl.runs.outcome import Outcome
from maple_parsl.runs.run import Run
from maple_parsl.runs.state import RunState
from maple_parsl.runs.store import Store

Params = Mapping[str, object] | Sequence[object]


class Group:
    """The runs of a sweep (side by side) or of a chain (one after the other).

    Attributes:
        id: their common id. kind: ``sweep`` or ``chain``. runs: in order.
    """

    def __init__(self, group: str, kind: str, runs: Sequence[Run]) -> None:
        self.id, self.kind, self.runs = group, kind, tuple(runs)

    @classmethod
    def open(cls, prefix: str, store: Store | None = None) -> Group:
        """The sweep or chain of that id, or whose id begins so.

        Raises:
            UnknownNameError: there is none, or several.
        """
        store = store or Store()
        group, entries = store.members(prefix)
        if not entries:
            raise UnknownNameError("sweep or chain", prefix, ())
        runs = [Run(entry, store) for entry in entries]
        return cls(group, runs[0].summary.kind or "sweep", runs)

    @property
    def states(self) -> Counter[str]:
        """How many runs are in which state."""
        return Counter(run.state.value for run in self.runs)

    def result(self, timeout: float | None = None) -> list[Outcome]:
        """Wait for the end of all runs; their outcomes in order.

        Args:
            timeout: seconds to wait at most, for all together.

        Raises:
            TimeoutError: some have not ended.
        """
        end = None if timeout is None else time.monotonic() + timeout
        return [run.result(None if end is None else max(0.0, end - time.monotonic())) for run in self.runs]

    def cancel(self) -> None:
        """End all runs that have not ended; the last of a chain first, so that none starts meanwhile.

        Raises:
            SchedulerError: the scheduler could not be told of some; the first error is raised at the end.
        """
        if self.kind == "chain":
            with contextlib.suppress(MapleError):
                files.write(self.folder / "stop", "cancelled\n")
        errors: list[MapleError] = []
        for run in reversed(self.runs):
            try:
                run.cancel()
            except MapleError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    @property
    def folder(self) -> Path:
        """What the runs share; of a sweep in several parts, the first part's."""
        return self.runs[0].run_dir.parent

    @property
    def ok(self) -> bool:
        """A sweep: every run succeeded. A chain: one did."""
        done = [run.state is RunState.DONE for run in self.runs]
        return any(done) if self.kind == "chain" else all(done)

    def __repr__(self) -> str:
        return f"Group({self.id!r}, {self.kind!r}, {len(self.runs)} runs)"


def arguments(params: Params) -> tuple[str, ...]:
    """One set of parameters as arguments: ``{"lr": 0.1, "amp": True}`` is ``--lr 0.1 --amp``; words stay.

    Raises:
        RequestError: they are neither, or have a line break.
    """
    words: list[str] = []
    if isinstance(params, str) or not isinstance(params, (Mapping, Sequence)):
        raise RequestError(f"{params!r} is no set of parameters: a mapping, or a list of arguments")
    if isinstance(params, Mapping):
        for name, value in params.items():
            option = name if name.startswith("-") else f"--{name}"
            if value is True:
                words.append(option)
            elif value is not None and value is not False:
                words += [option, str(value)]
    else:
        words = [str(word) for word in params]
    for word in words:
        if not word.isprintable():
            raise RequestError(f"the parameter {word!r} has a control character, which no job script can hold")
    return tuple(words)
