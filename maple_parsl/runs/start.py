"""From a plan to a submitted run: every check first, then the files, then the scheduler.

What the run reads was looked at when the plan was made (:mod:`maple_parsl.runs.inputs`).
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from maple_parsl.catalogue import Catalogue, SiteRecord
from maple_parsl.errors import ComposeError, MapleError, RequestError
from maple_parsl.plan import Plan, RunPlace
from maple_parsl.runs import cost, inside, restart, submit, trust, whereabouts
from maple_parsl.runs.backend import backend
from maple_parsl.runs.place import place
from maple_parsl.runs.prepare import check_script, prepare
from maple_parsl.runs.run import Run
from maple_parsl.runs.store import Store


@dataclass(frozen=True)
class Terms:
    """Under which conditions a run may start.

    Attributes:
        yes: the cost is confirmed. ask: puts a question to a person, where one is there.
        max_node_hours: limit of this run. force: also with findings of severity error.
        here: in the allocation this process is in. run_root: folder for run directories.
        run_id: the id the run gets, instead of a new one.
        restarts: how often it may be started again where it fails, see :mod:`maple_parsl.runs.restart`.
    """

    yes: bool = False
    ask: Callable[[str], bool] | None = None
    max_node_hours: float | None = None
    force: bool = False
    here: bool = False
    run_root: str | None = None
    run_id: str | None = None
    restarts: int = 0


def start(plan: Plan, record: SiteRecord, catalogue: Catalogue, terms: Terms, store: Store | None = None) -> Run:
    """Submit a plan, or launch it here.

    Raises:
        ComposeError: the plan has findings of severity error, and ``force`` was not given.
        NotHereError: the site is not this machine, or the allocation does not fit.
        LimitError: it may cost too much, or was not confirmed.
        RequestError: the script is not there, or the folders do not suit.
        SubmissionError, SchedulerError, StoreError: see :func:`maple_parsl.runs.submit.submit`.
    """
    store = store or Store()
    cwd = catalogue.cwd
    if terms.here:
        if terms.restarts:
            raise RequestError("restarts are submitted; a run inside an allocation has none")
        sound(plan, terms.force)
        check_script(plan, cwd)
        trust.check(record, store.root, yes=terms.yes, ask=terms.ask)
        granted = inside.allocation(plan.scheduler, catalogue.environ)
        inside.check(plan, granted)
        chosen = _place(plan, record, catalogue, terms, store)
    else:
        granted = None
        chosen = agreed(plan, record, catalogue, terms, store)
    bound = plan.at(chosen)
    series = None
    if terms.restarts:
        limit = cost.lowest(terms.max_node_hours, record.site.defaults)
        series = {"restarts": restart.begun(plan, terms.restarts, chosen.run_id, cwd, limit, terms.force)}
    try:
        script = prepare(bound, cwd)
        entry = store.add(bound, here=granted is not None, member=series)
    except MapleError:
        remove(Path(chosen.run_dir))
        raise
    run = Run(entry, store)
    if granted is not None:
        inside.start(entry, bound, script, granted)
    else:
        submit.submit(entry, bound, script, backend(store, run.summary).scheduler())
    return run


def agreed(plan: Plan, record: SiteRecord, catalogue: Catalogue, terms: Terms, store: Store, jobs: int = 1) -> RunPlace:
    """Every check that comes before a submission, the cost of all ``jobs`` last; the place of the run.

    Raises:
        As :func:`start`, without those of the scheduler.
    """
    sound(plan, terms.force)
    check_script(plan, catalogue.cwd)
    trust.check(record, store.root, yes=terms.yes, ask=terms.ask)
    whereabouts.check(catalogue, record)
    chosen = _place(plan, record, catalogue, terms, store)
    limit, defaults = terms.max_node_hours, record.site.defaults
    cost.check(plan, defaults, max_node_hours=limit, yes=terms.yes, ask=terms.ask, jobs=jobs, restarts=terms.restarts)
    return chosen


def rehearse(plan: Plan, record: SiteRecord, catalogue: Catalogue, terms: Terms, store: Store | None = None) -> Run:
    """Check everything that :func:`start` checks short of the machine; keep plan and script.

    A limit of node-hours counts; a confirmation is not asked for, as nothing is submitted.

    The run is stored so that its files can be looked at; it has no job and never gets one by itself.

    Raises:
        As :func:`start`, without those of the scheduler.
    """
    store = store or Store()
    sound(plan, terms.force)
    chosen = _place(plan, record, catalogue, terms, store)
    cost.check(plan, record.site.defaults, max_node_hours=terms.max_node_hours, yes=True)
    bound = plan.at(chosen)
    prepare(bound, catalogue.cwd)
    return Run(store.add(bound, submits=False), store)


def _place(plan: Plan, record: SiteRecord, catalogue: Catalogue, terms: Terms, store: Store) -> RunPlace:
    root, run_id = terms.run_root, terms.run_id
    chosen = place(plan, record.site, cwd=catalogue.cwd, run_root=root, run_id=run_id, environ=catalogue.environ)
    if os.path.realpath(Path(chosen.run_dir).parent) == os.path.realpath(store.runs):
        raise RequestError(
            f"the run root {store.runs} is where Maple keeps its own records of runs; choose another folder:"
            " --run-root (or MAPLE_RUN_ROOT)"
        )
    return chosen


def sound(plan: Plan, force: bool) -> None:
    """Pass when the plan has no findings of severity error, or they are accepted.

    Raises:
        ComposeError: it has.
    """
    errors = [finding for finding in plan.findings if finding.severity == "error"]
    if errors and not force:
        raise ComposeError(
            [f"{f.message}{f' ({f.fix})' if f.fix else ''} [{f.rule}; --force submits it anyway]" for f in errors]
        )


def remove(folder: Path) -> None:
    """Take back a run directory of which nothing was submitted; only what was made a moment ago."""
    marks = ("claim", "started.json", "log.txt")
    if not any(os.path.lexists(folder / name) for name in marks) and not (folder / "attempts").exists():
        with contextlib.suppress(OSError):
            shutil.rmtree(folder)
