"""Which endpoint is asked first: by what its calls took, how many are under way, and when it last failed."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

FORGET = 60.0
"""Seconds after a failure until an endpoint is tried again; doubled for each further one, up to ten minutes."""
_MOST = 600.0
_WEIGHT = 0.3  # of the latest call in the running mean


@dataclass
class Record:
    """What is remembered of an endpoint.

    Attributes:
        in_flight: calls under way. latency: running mean of its calls, seconds; None before the first.
        failed_at, failures: the latest failure, and how many there were in a row. answered_at: the latest answer.
    """

    in_flight: int = 0
    latency: float | None = None
    failed_at: float = 0.0
    failures: int = 0
    answered_at: float = 0.0

    def retry_at(self) -> float:
        """When it may be tried again."""
        return self.failed_at + min(FORGET * 2 ** (self.failures - 1), _MOST) if self.failures else 0.0


@dataclass
class Router:
    """Keeps the records; safe to use from many threads."""

    records: dict[str, Record] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def order(self, names: Iterable[str], now: float) -> list[str]:
        """The names that may be tried, best first: few calls in flight, short ones, and unknown before slow."""
        with self._lock:
            known = {name: self.records.setdefault(name, Record()) for name in names}
        allowed = [name for name, record in known.items() if record.retry_at() <= now]
        return sorted(allowed, key=lambda name: (known[name].in_flight + 1) * (known[name].latency or 0.5))

    def started(self, name: str) -> None:
        """A call to it begins."""
        with self._lock:
            self.records.setdefault(name, Record()).in_flight += 1

    def ended(self, name: str, seconds: float, now: float, good: bool) -> None:
        """A call to it is over."""
        with self._lock:
            record = self.records.setdefault(name, Record())
            record.in_flight = max(0, record.in_flight - 1)
            if not good:
                record.failed_at, record.failures = now, record.failures + 1
                return
            record.failures, record.answered_at = 0, now
            before = record.latency
            record.latency = seconds if before is None else (1 - _WEIGHT) * before + _WEIGHT * seconds
