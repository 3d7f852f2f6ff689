"""Whom to ask about the jobs of a site: its scheduler, and the poller in front of it, one per process."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from maple_parsl import schedulers
from maple_parsl.errors import MapleError
from maple_parsl.runs import poll
from maple_parsl.runs.recover import Recovery
from maple_parsl.runs.roster import Roster
from maple_parsl.runs.state import Seen
from maple_parsl.runs.store import Store, Summary
from maple_parsl.schedulers.base import Scheduler, listed
from maple_parsl.transport.via import Via

ELSEWHERE = 3
"""Seconds between questions to a site elsewhere at least, well inside what the service of its endpoint allows."""


class Backend:
    """The scheduler of a site as runs use it.

    Args:
        store: whose runs are asked about. like: one of them; it names site and scheduler.
    """

    def __init__(self, store: Store, like: Summary) -> None:
        self.kind, self._clusters, self._via = like.scheduler, like.clusters, like.via
        self._store, self._like = store, like
        self._scheduler: Scheduler | None = None
        seconds = poll.interval(like.poll_seconds if like.via is None else max(like.poll_seconds, ELSEWHERE))
        self.recovery = Recovery(seconds)
        roster = Roster(store, like.site, like.clusters)
        name = ".".join(filter(None, (like.site, like.clusters, str(like.via or ""))))
        self._poller = poll.Poller(store.root, name, seconds, roster.job_ids, self.scheduler)

    def scheduler(self) -> Scheduler:
        """The scheduler itself, for submitting, finding by name and cancelling."""
        if self._scheduler is None and self._via is not None:
            from maple_parsl.runs.away.scheduler import AwayScheduler
            from maple_parsl.transport import connect

            self._scheduler = AwayScheduler(self._store, self._like, connect(self._via))
        if self._scheduler is None:
            self._scheduler = schedulers.scheduler(self.kind, clusters=self._clusters)
        return self._scheduler

    def seen(self, job_id: str, host: str) -> Seen:
        """The latest answer about a job; never raises.

        Without a scheduler the processes of this machine are looked at, which costs nothing: no poller.
        """
        if self.kind != "none" or self._via is not None:
            return self._poller.seen(job_id)
        if host and host != os.uname().nodename:
            return Seen(error=f"it runs on {host}; ask there for more than its files say")
        try:
            job = self.scheduler().query([job_id]).get(job_id)
        except MapleError as error:
            return Seen(error=str(error))
        return Seen(job if listed(job) else None, time.time(), 0.0)


_backends: dict[tuple[Path, str, str, str | None, Via | None, float], Backend] = {}
_lock = threading.Lock()


def backend(store: Store, like: Summary) -> Backend:
    """The backend shared by all runs of this process at that site."""
    key = (store.root, like.site, like.scheduler, like.clusters, like.via, poll.interval(like.poll_seconds))
    with _lock:
        if key not in _backends:
            _backends[key] = Backend(store, like)
        return _backends[key]
