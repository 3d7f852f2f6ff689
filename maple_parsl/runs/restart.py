"""Automatic restarts: a run that failed for a reason that can be put right, or that passes, is submitted again.

Only whoever waits for a run does it, and only where it was asked for (``restarts=N``). Each attempt is a run of its
own with its own limits; all share one folder of checkpoints and one limit of node-hours. What was decided after an
attempt stands in ``restart.json`` of its entry, created once, so that several who wait start no two:

    {"run": ID or null, "why": "...", "changes": ["walltime becomes ... (you had said ...): ..."], ...}
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maple_parsl.errors import LimitError, MapleError, RequestError, StoreError
from maple_parsl.plan import Plan, RunPlace
from maple_parsl.runs import submit
from maple_parsl.runs.diagnosed import diagnosed
from maple_parsl.runs.outcome import Outcome
from maple_parsl.runs.place import new_id
from maple_parsl.runs.prepare import prepare
from maple_parsl.runs.state import RunState

if TYPE_CHECKING:
    from maple_parsl.correction import PlanCorrection
    from maple_parsl.diagnosis import Diagnosis
    from maple_parsl.runs.run import Run
    from maple_parsl.runs.store import Store

MOST = 10
_PATIENCE = 20.0  # seconds for another process to put on record what it is starting
FILE = "restart.json"
_PASSING = frozenset({"node_failure", "preemption", "port_conflict"})
"""Causes that say nothing against the launch, as classes of failures."""
_FAILED = {
    RunState.FAILED,
    RunState.TIMEOUT,
    RunState.NODE_FAILURE,
    RunState.OUT_OF_MEMORY,
    RunState.PREEMPTED,
}
_OPEN = {RunState.UNKNOWN, RunState.NOT_SUBMITTED, RunState.REFUSED}
"""Ends that may turn out to be none."""
_OF_STATE = {RunState.NODE_FAILURE: "node_failure", RunState.PREEMPTED: "preemption"}


@dataclass(frozen=True)
class Series:
    """What the attempts of one launch share, as the record of each run has it.

    Attributes:
        allowed: restarts at most. number: of this run among them, 0 for the first run.
        first: id of the first run. cwd: where its project files are.
        limit: node-hours of all attempts together; None without a scheduler. used: by the attempts before.
        failure: how the attempt before failed. saved: when its newest checkpoint was written, in nanoseconds.
    """

    allowed: int
    first: str
    cwd: str
    limit: float | None
    force: bool = False
    number: int = 0
    used: float = 0.0
    failure: tuple[str, ...] = ()
    saved: int = 0

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> Series:
        """Read it from a record; raises StoreError for what is none."""
        try:
            return cls._of(raw)
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(f"the record of a run's restarts is damaged ({error})") from None

    @classmethod
    def _of(cls, raw: Mapping[str, Any]) -> Series:
        return cls(
            allowed=int(raw["allowed"]),
            first=str(raw["first"]),
            cwd=str(raw["cwd"]),
            limit=None if raw["limit"] is None else float(raw["limit"]),
            force=bool(raw["force"]),
            number=int(raw["number"]),
            used=float(raw["used"]),
            failure=tuple(str(word) for word in raw["failure"]),
            saved=int(raw["saved"]),
        )


class Stop(Exception):
    """Why there is no restart."""


def begun(plan: Plan, allowed: int, first: str, cwd: Path, limit: float | None, force: bool) -> dict[str, Any]:
    """What the record of a first run says of its restarts.

    Args:
        limit: node-hours that all attempts may use together; None: what so many attempts of this plan can cost.

    Raises:
        RequestError: that many are not allowed. LimitError: nobody can tell what an attempt may cost.
    """
    if not 0 <= allowed <= MOST:
        raise RequestError(f"restarts is {allowed}; state 0 to {MOST}")
    if plan.scheduler != "none" and plan.node_hours is None:
        raise LimitError("restarts share a limit of node-hours, and this job has no walltime that Maple was told")
    whole = None if plan.node_hours is None else plan.node_hours * (1 + allowed)
    shared = whole if limit is None or plan.scheduler == "none" else limit
    return asdict(Series(allowed, first, str(cwd), shared, force))


def following(run: Run, outcome: Outcome) -> Run | None:
    """The run that takes this one's place, which has ended; started now where that is due. None: there is none.

    Raises:
        StoreError: its records are damaged, or what was decided cannot be written.
    """
    from maple_parsl.runs.run import Run

    raw = run.summary.restarts
    if raw is None or outcome.ok or outcome.state in _OPEN:
        return None
    store, series = run.store, Series.of(raw)
    kept = run.entry.read(FILE)
    made: tuple[Plan, Series] | None = None
    if kept is None:
        try:
            made, decided = _decide(run, outcome, series)
        except Stop as stop:
            decided = {"run": None, "why": str(stop), "changes": []}
        run.entry.create(FILE, decided)
        kept = run.entry.read(FILE) or decided  # another who waits may have been first
    chosen = kept.get("run")
    if not chosen:
        return None
    if chosen in store.ids():
        return Run.open(chosen, store)
    try:
        plan, later = made or _decide(run, outcome, series)[0]
        return _start(run, plan, later, str(chosen), store)
    except (MapleError, Stop) as error:
        if _appears(str(chosen), run.run_dir.with_name(str(chosen)), store):
            return Run.open(chosen, store)  # started meanwhile by another, or refused by the scheduler: its own story
        run.entry.write(FILE, {"run": None, "why": f"it could not be submitted: {error}", "changes": []})
        return None


def _appears(run_id: str, folder: Path, store: Store) -> bool:
    """Whether a run is on record, or is about to be: another who waits has made its folder."""
    end = time.monotonic() + _PATIENCE
    while run_id not in store.ids():
        if not folder.exists() or time.monotonic() > end:
            return run_id in store.ids()
        time.sleep(0.1)
    return True


def told(run: Run) -> list[str]:
    """What was decided after this run, in words; empty where nothing was."""
    with contextlib.suppress(StoreError):
        kept = run.entry.read(FILE)
        if kept is not None:
            head = f"started again as run {kept['run']}" if kept.get("run") else "not started again"
            return [f"{head}: {kept.get('why', '')}", *map(str, kept.get("changes", ()))]
    return []


def stop(run: Run, why: str) -> Run | None:
    """No restart from now on; the run that took this one's place already, if any."""
    from maple_parsl.runs.run import Run

    if run.summary.restarts is None or run.entry.create(FILE, {"run": None, "why": why, "changes": []}):
        return None
    later = (run.entry.read(FILE) or {}).get("run")
    if later and later in run.store.ids():
        return Run.open(later, run.store)
    run.entry.write(FILE, {"run": None, "why": why, "changes": []})  # decided, and not started yet
    return None


def _decide(run: Run, outcome: Outcome, series: Series) -> tuple[tuple[Plan, Series], dict[str, Any]]:
    """The next attempt's plan and record, and what is written about it; raises Stop where there is to be none."""
    if outcome.state not in _FAILED:
        raise Stop(f"a run that is {outcome.state.value} is not started again")
    if series.number >= series.allowed:
        raise Stop(f"{series.allowed} restart{'s' if series.allowed != 1 else ''} were allowed")
    diagnosis = diagnosed(run, outcome)
    failure = _failure(outcome, diagnosis)
    if failure == series.failure:
        raise Stop(f"the same failure came twice: {', '.join(failure)}")
    saved = _saved(run)
    if series.number and saved <= series.saved:
        raise Stop("the attempt wrote no newer checkpoint than the one before")
    plan, why, changes = _mended(run, diagnosis, failure[1], series)
    used = series.used + _used(run, outcome)
    if series.limit is not None:
        wanted = plan.node_hours if plan.node_hours is not None else float("inf")
        if used + wanted > series.limit * (1 + 1e-9):
            raise Stop(f"{used:.2f} of {series.limit:g} node-hours are used, and another attempt may take {wanted:.2f}")
    following = replace(series, number=series.number + 1, used=used, failure=failure, saved=saved)
    return (plan, following), {"run": new_id(), "why": why, "changes": changes}


def _failure(outcome: Outcome, diagnosis: Diagnosis) -> tuple[str, ...]:
    """How a run failed, for comparison with the next: state, class of the cause, its signature."""
    state = outcome.state.value
    if outcome.state in _OF_STATE:  # the scheduler knows, whatever the log of the processes it ended says
        return state, _OF_STATE[outcome.state]
    first = diagnosis.causes[0] if diagnosis.causes else None
    return (state, first.fault_class, first.signature) if first else (state, "unknown", str(outcome.code))


def _mended(run: Run, diagnosis: Diagnosis, fault: str, series: Series) -> tuple[Plan, str, list[str]]:
    """The plan to start with, why, and what of the request is another, each with what the user had said."""
    # Upward, and late: a plan is composed from the catalogue as it is now.
    from maple_parsl.api import composing, correct

    old = run.plan
    try:
        made: PlanCorrection = correct(old, diagnosis, cwd=series.cwd)
    except MapleError as error:
        raise Stop(f"the launch cannot be made again: {error}") from None
    if made.correct and made.changes and made.plan is not None:
        words = []
        for change in made.changes:
            said = "you had said" if series.number == 0 else "it was"
            was = f" ({said} {change.before})" if change.stated else ""
            words.append(f"{change.field} becomes {change.after or 'unset'}{was}: {change.why}")
        return made.plan, f"{fault}; the launch was changed", words
    if fault in _PASSING:
        try:
            plan, _ = composing.composed(old.request, composing.catalogue_at(series.cwd))
        except MapleError as error:
            raise Stop(f"the launch cannot be made again: {error}") from None
        return plan, f"{fault}, which says nothing against the launch", []
    reasons = "; ".join(made.cannot) or "no cause was found that a change of the launch repairs"
    raise Stop(reasons)


def _used(run: Run, outcome: Outcome) -> float:
    """Node-hours that an attempt used; where that is not known exactly, what it may have used."""
    if outcome.attempts == 1 and outcome.node_hours is not None:
        return outcome.node_hours
    return max(1, outcome.attempts) * (run.summary.node_hours or 0.0)


def _saved(run: Run) -> int:
    """When the newest entry of the folder of checkpoints was written, in nanoseconds; 0 where there is none."""
    newest = 0
    with contextlib.suppress(OSError), os.scandir(run.run_dir / "checkpoints") as entries:
        for entry in entries:
            if not entry.name.startswith("."):
                newest = max(newest, entry.stat().st_mtime_ns)
    return newest


def _start(before: Run, plan: Plan, series: Series, run_id: str, store: Store) -> Run:
    from maple_parsl.runs.backend import backend
    from maple_parsl.runs.run import Run
    from maple_parsl.runs.start import sound

    sound(plan, series.force)
    folder = before.run_dir.with_name(run_id)
    source = Path(before.summary.work_dir)  # also a snapshot: the program does not change between attempts
    work_dir = str(folder / "snapshot") if plan.request.snapshot else str(source)
    bound = plan.model_copy(update={"resumes": True}).at(
        RunPlace(run_id=run_id, run_dir=str(folder), work_dir=work_dir)
    )
    script = prepare(bound, source)
    _share_checkpoints(before.run_dir, folder)
    entry = store.add(bound, member={"restarts": asdict(series)})
    run = Run(entry, store)
    submit.submit(entry, bound, script, backend(store, run.summary).scheduler())
    return run


def _share_checkpoints(old: Path, new: Path) -> None:
    """The new attempt goes on in the folder of the first one's checkpoints."""
    kept = Path(os.path.realpath(old / "checkpoints"))
    try:
        kept.mkdir(exist_ok=True)
        os.symlink(kept, new / "checkpoints")
    except OSError as error:
        raise StoreError(f"{new / 'checkpoints'} cannot lead to {kept}: {error.strerror}") from None
