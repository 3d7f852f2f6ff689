"""Many runs at a glance: state, reason, node-hours, figures. Files are read; the scheduler is asked by the poller."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from maple_parsl.errors import MapleError, StoreError
from maple_parsl.runs.evidence import gather
from maple_parsl.runs.metrics import Metrics
from maple_parsl.runs.run import Run
from maple_parsl.runs.store import Entry, Store, Summary


@dataclass(frozen=True)
class Glance:
    """One run.

    Attributes:
        state: of :class:`~maple_parsl.runs.state.RunState`, or ``unreadable``. created, changed: seconds since 1970;
            ``changed`` is the end of a run that ended.
        used: node-hours used by the latest attempt so far. most: node-hours at most; None where unknown.
    """

    run: str
    site: str
    title: str
    created: float
    state: str
    final: bool
    job_id: str | None
    why: str
    nodes: int | None = None
    changed: float | None = None
    used: float | None = None
    most: float | None = None
    metrics: Metrics | None = None


def glance(store: Store, summary: Summary, now: float | None = None) -> Glance:
    """One run; what cannot be read is said in ``why``."""
    try:
        if summary.problem is not None:
            raise StoreError(summary.problem)
        return _glance(Run(Entry(store.runs / summary.id), store), summary, time.time() if now is None else now)
    except MapleError as error:
        return Glance(summary.id, summary.site, summary.title, summary.created, "unreadable", False, None, str(error))


def _glance(run: Run, summary: Summary, now: float) -> Glance:
    outcome = run.outcome()
    fixed = (summary.id, summary.site, summary.title, summary.created)
    most = summary.node_hours
    if outcome is not None:
        return Glance(
            *fixed,
            outcome.state.value,
            True,
            outcome.job_id,
            outcome.cause,
            nodes=summary.nodes,
            changed=outcome.ended,
            used=outcome.node_hours,
            most=most,
            metrics=outcome.metrics,
        )
    status = run.status()
    used = None
    started = gather(run.files).started if status.state.value in ("running", "ending") else None
    if started is not None and summary.nodes:
        used = max(0.0, now - started.started) / 3600 * summary.nodes
    return Glance(
        *fixed,
        status.state.value,
        status.state.final,
        status.job_id,
        status.explanation,
        nodes=summary.nodes,
        used=used,
        most=most,
        metrics=run.metrics,
    )


def glances(store: Store, *, site: str | None = None, recent: float = 3600.0) -> Iterator[Glance]:
    """Active runs, and those that ended within ``recent`` seconds, newest first.

    Args:
        site: only runs at this site.
    """
    now = time.time()
    for summary in store.summaries():
        if site is not None and summary.site != site and summary.problem is None:
            continue
        found = glance(store, summary, now)
        if not found.final or now - (found.changed or found.created) <= recent:
            yield found
