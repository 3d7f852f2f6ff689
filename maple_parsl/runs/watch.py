"""One thread that watches all runs somebody waits for."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING

from maple_parsl.errors import MapleError

if TYPE_CHECKING:
    from maple_parsl.runs.outcome import Outcome
    from maple_parsl.runs.run import Run

_SHARE = 0.1
"""Of its time, the thread spends at most this much looking."""
_FORGIVEN = 30
"""Looks in a row that may fail (a network file system that is away) before a future gets the error."""


class Watcher:
    """Completes the future of each run with its outcome."""

    def __init__(self, tick: float = 0.5) -> None:
        self._tick = tick
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._futures: dict[tuple[str, str], tuple[Run, Future[Outcome]]] = {}
        self._failures: dict[tuple[str, str], int] = {}
        self._thread: threading.Thread | None = None

    def future(self, run: Run) -> Future[Outcome]:
        """The future of a run, the same for all who ask; it cannot be cancelled (cancel the run instead)."""
        key = (str(run.entry.folder.parent), run.id)
        with self._lock:
            if key in self._futures:
                return self._futures[key][1]
            future: Future[Outcome] = Future()
            future.set_running_or_notify_cancel()
            self._futures[key] = run, future
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._watch, name="maple-watch", daemon=True)
                self._thread.start()
        self._wake.set()
        return future

    def _watch(self) -> None:
        while True:
            with self._lock:
                waiting = list(self._futures.items())
                if not waiting:
                    self._thread = None
                    return
            self._wake.clear()
            began = time.monotonic()
            for key, (run, future) in waiting:
                self._look(key, run, future)
            spent = time.monotonic() - began
            self._wake.wait(max(self._tick, spent / _SHARE))

    def _look(self, key: tuple[str, str], run: Run, future: Future[Outcome]) -> None:
        try:
            outcome = run.outcome()
        except MapleError as error:
            self._failures[key] = self._failures.get(key, 0) + 1
            if self._failures[key] >= _FORGIVEN:
                self._drop(key)
                future.set_exception(error)
            return
        except Exception as error:  # a fault of ours must not leave anybody waiting for ever
            self._drop(key)
            future.set_exception(error)
            return
        self._failures.pop(key, None)
        if outcome is not None:
            self._drop(key)
            future.set_result(outcome)

    def _drop(self, key: tuple[str, str]) -> None:
        with self._lock:
            self._futures.pop(key, None)


watcher = Watcher()
