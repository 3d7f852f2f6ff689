"""Which jobs of a site are worth asking about: those of runs whose outcome is not on file."""

from __future__ import annotations

import os
import time
from pathlib import Path

from maple_parsl.errors import StoreError
from maple_parsl.runs.store import Entry, Store, Summary

OLDEST = 90 * 86400
"""Seconds after which nobody is asked about a run any more; longer than any queue and walltime together."""


class Roster:
    """The active jobs of one site; what cannot change is read once."""

    def __init__(self, store: Store, site: str, clusters: str | None = None) -> None:
        self._store, self._site, self._clusters = store, site, clusters
        self._summaries: dict[str, Summary] = {}
        self._over: set[str] = set()

    def job_ids(self) -> list[str]:
        """The ids, oldest run first. A run that cannot be read is left out."""
        found = []
        for run_id in self._store.ids():
            if run_id in self._over:
                continue
            try:
                job_id = self._job(Entry(self._store.runs / run_id))
            except StoreError:
                continue
            if job_id:
                found.append(job_id)
        return found

    def _job(self, entry: Entry) -> str | None:
        summary = self._summaries.get(entry.id)
        if summary is None:
            summary = self._summaries[entry.id] = entry.summary()
        mine = summary.site == self._site and summary.clusters == self._clusters and not summary.here
        if not mine or time.time() - summary.created > OLDEST:
            self._over.add(entry.id)
            return None
        if (entry.folder / "outcome.json").exists():
            return None
        try:
            return os.readlink((Path(summary.run_dir) if summary.via is None else entry.folder / "site") / "claim")
        except OSError:
            pass
        number = entry.submissions()
        sent = entry.read(f"submitted.{number}.json") if number else None
        return str(sent["job_id"]) if sent and sent.get("job_id") else None
