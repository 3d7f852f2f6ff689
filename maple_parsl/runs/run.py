"""Run: a submitted launch, followed from this process or any other."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from maple_parsl.errors import MapleError, RequestError, RunFailedError, StoreError
from maple_parsl.plan import Plan
from maple_parsl.runs import following, inside, logs, restart, submit
from maple_parsl.runs.backend import Backend, backend
from maple_parsl.runs.evidence import Evidence, gather
from maple_parsl.runs.logs import LogPart
from maple_parsl.runs.metrics import Metrics
from maple_parsl.runs.metrics import read as read_metrics
from maple_parsl.runs.outcome import Outcome, conclude
from maple_parsl.runs.recover import Submission
from maple_parsl.runs.state import Facts, Resolved, RunState, Seen, resolve, to_dict
from maple_parsl.runs.status import Status
from maple_parsl.runs.store import Entry, Store, Summary
from maple_parsl.runs.words import explain
from maple_parsl.transport import connect

_SURE = set(RunState) - {RunState.UNKNOWN, RunState.NOT_SUBMITTED, RunState.REFUSED}


@dataclass(frozen=True)
class _Look:
    facts: Facts
    evidence: Evidence
    seen: Seen
    found: Resolved
    error: str | None


class Run:
    """A run in the store.

    Args:
        entry: its folder in the store. store: the store.
    """

    def __init__(self, entry: Entry, store: Store) -> None:
        self.entry, self.store = entry, store
        self.id = entry.id

    @classmethod
    def open(cls, run_id: str, store: Store | None = None) -> Run:
        """The run of that id, or whose id begins so.

        Raises:
            UnknownNameError: no such run, or several; they are named.
            StoreError: its files cannot be read.
        """
        store = store or Store()
        run = cls(store.open(run_id), store)
        _ = run.summary
        return run

    @cached_property
    def summary(self) -> Summary:
        """What the store's list shows."""
        return self.entry.summary()

    @cached_property
    def plan(self) -> Plan:
        """The plan that was submitted.

        Raises:
            RequestError: the run is of a hand-written script, which has none.
        """
        if self.summary.hand:
            raise RequestError(f"run {self.id} is of the script {self.summary.hand}, which no plan of Maple's made")
        return self.entry.plan()

    @property
    def run_dir(self) -> Path:
        """The folder with script, log and exit record."""
        return Path(self.summary.run_dir)

    @cached_property
    def files(self) -> Path:
        """Where log and records are read: the run directory, or the mirror of one elsewhere."""
        return self.run_dir if self.summary.via is None else self.entry.folder / "site"

    @property
    def script(self) -> Path:
        """The script as it was, or would be, submitted."""
        return (self.run_dir if self.summary.via is None else self.entry.folder / "bundle") / "script.sh"

    @property
    def state(self) -> RunState:
        """Where it stands, in one word."""
        return self.status().state

    @property
    def job_id(self) -> str | None:
        """The scheduler's id of the job; None before there is one."""
        return self._look().found.job_id

    @property
    def metrics(self) -> Metrics | None:
        """The training's figures so far; None when it wrote none."""
        return read_metrics(self.files)

    def status(self) -> Status:
        """Where the run stands now. The scheduler is asked at most once an interval for all runs.

        Raises:
            StoreError: the run's records cannot be read.
        """
        look = self._look()
        found, job = look.found, look.found.job
        record = found.exit
        return Status(
            id=self.id,
            state=found.state,
            job_id=found.job_id,
            site=self.summary.site,
            title=self.summary.title,
            attempt=look.evidence.attempt,
            explanation=explain(found, look.facts, look.evidence, look.error),
            reason=job.reason if job else None,
            scheduler_state=job.raw_state if job else None,
            never=bool(job and job.never and not found.state.final),
            start_estimate=job.start_estimate if job and found.state is RunState.PENDING else None,
            hosts=record.hosts if record else (job.nodes or "") if job else "",
            exit=to_dict(record),
            asked_at=look.seen.asked_at or None,
            run_dir=self.summary.run_dir,
            preflight=record.preflight if record and record.preflight else look.evidence.preflight,
            watchdog=record.watchdog if record and record.watchdog else look.evidence.watchdog,
            notes=look.evidence.notes,
            restarts=tuple(restart.told(self)) if self.summary.restarts else (),
        )

    def outcome(self) -> Outcome | None:
        """The outcome, once there is one; does not wait.

        Raises:
            StoreError: the run's records cannot be read.
        """
        kept = self._kept()
        if kept is not None:
            return kept
        look = self._look()
        if not look.found.state.final:
            return None
        return self._conclude(look)

    def result(self, timeout: float | None = None, *, check: bool = False) -> Outcome:
        """Wait for the end and return the outcome, whatever it is.

        A run that was started with ``restarts`` and fails is started again from here where that can help; the
        outcome is then that of the last attempt, and its ``restarts`` say what was done.

        Args:
            timeout: seconds to wait at most. check: raise unless the run did what it was asked to.

        Raises:
            TimeoutError: it has not ended yet; it goes on.
            RunFailedError: with ``check``, it did not succeed.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        run, outcome, story = self, self.end(timeout), list[str]()
        while (later := run.following()) is not None:
            story += restart.told(run)
            run, outcome = later, later.end(None if deadline is None else max(0.0, deadline - time.monotonic()))
        if run.summary.restarts and not outcome.ok:
            story += restart.told(run)
        outcome = replace(outcome, restarts=tuple(story)) if story else outcome
        if check and not outcome.ok:
            raise RunFailedError(str(outcome))
        return outcome

    def end(self, timeout: float | None = None) -> Outcome:
        """Wait for the end of this attempt alone; arguments and errors as for :meth:`result`."""
        return self._ended().result(timeout)

    def following(self) -> Run | None:
        """The attempt that takes the place of this run, which has failed; started now where that is due.

        None: the run goes on, succeeded, was not to be started again, or another attempt would not help.
        """
        outcome = self.outcome() if self.summary.restarts else None
        return None if outcome is None else restart.following(self, outcome)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end; False when it has not come within ``timeout`` seconds."""
        try:
            self._ended().result(timeout)
        except TimeoutError:
            return False
        return True

    @cached_property
    def future(self) -> Future[Outcome]:
        """A future for other programs to depend on, such as a Parsl app.

        It is of this attempt alone. It gives the outcome of a successful run and raises :class:`RunFailedError` for
        any other, so that what depends on a failed run does not start.
        """
        made: Future[Outcome] = Future()
        made.set_running_or_notify_cancel()

        def hand_on(ended: Future[Outcome]) -> None:
            error = ended.exception()
            if error is not None:
                made.set_exception(error)
            elif (outcome := ended.result()).ok:
                made.set_result(outcome)
            else:
                made.set_exception(RunFailedError(str(outcome)))

        self._ended().add_done_callback(hand_on)
        return made

    def logs(self, offset: int = 0) -> LogPart:
        """The log from a byte offset on (negative: from the end); its ``offset`` is where to go on."""
        if self.summary.via is None:
            return logs.read(self.run_dir, offset)
        from maple_parsl.runs.away import logs as away

        return away.read(self.entry, self.summary, connect(self.summary.via), offset)

    def fetched(self) -> Path:
        """The folder with log and records, the log of a run elsewhere brought up to date first."""
        if self.summary.via is not None:
            from maple_parsl.runs.away import logs as away

            away.fetch_all(self.entry, self.summary, connect(self.summary.via))
        return self.files

    def follow(
        self, offset: int = 0, every: float = 1.0, told: Callable[[str], None] | None = None
    ) -> Iterator[LogPart]:
        """Parts of the log as they are written, until the run has ended; looks ``every`` seconds.

        Args:
            told: is handed why the site does not answer; it is asked again.

        Raises:
            TransportError: the site has not answered for a quarter of an hour; the run goes on.
        """
        return following.parts(self, offset, every, told)

    def cancel(self) -> Status:
        """End the run. That it was asked for is noted first; asking twice does no harm.

        Raises:
            SchedulerError: the scheduler could not be told; the run goes on, ask again.
        """
        later = restart.stop(self, "it was cancelled")
        if later is not None:
            later.cancel()
        if self._kept() is None:
            self.entry.create("cancelled.json", {"at": time.time()})
            look = self._look(settling=True)
            if look.found.job_id is not None and not look.found.state.final:
                self._end(look.found.job_id)
        return self.status()

    def resubmit(self) -> Run:
        """Submit again a run of which no job exists; only ever done because a person asked.

        Raises:
            RequestError: there is, or may be, a job of this run.
            SubmissionError, SchedulerError, StoreError: as for the first submission.
        """
        state = self._look().found.state
        if state not in (RunState.NOT_SUBMITTED, RunState.REFUSED):
            raise RequestError(
                f"run {self.id} is {state.value}, so it has, or may have, a job; only a run without one is submitted"
                " again. Start a new run instead"
            )
        if (self.entry.folder / "cancelled.json").exists():
            raise RequestError(f"run {self.id} was cancelled; start a new run instead")
        if self.summary.group or self.summary.hand:
            what = f"the {self.summary.kind} {self.summary.group}" if self.summary.group else "a hand-written script"
            raise RequestError(f"run {self.id} is of {what}; start that once more instead")
        if not self.script.exists():
            raise StoreError(f"{self.script} is gone, and with it what would be submitted; start a new run")
        submit.submit(
            self.entry, self.plan, self.script, self._backend.scheduler(), number=self.entry.submissions() + 1
        )
        return self

    def __repr__(self) -> str:
        return f"Run({self.id!r})"

    @property
    def _backend(self) -> Backend:
        return backend(self.store, self.summary)

    def _ended(self) -> Future[Outcome]:
        from maple_parsl.runs.watch import watcher

        return watcher.future(self)

    def _end(self, job_id: str) -> None:
        if self.summary.here:
            inside.end(self.entry)
        else:
            self._backend.scheduler().cancel(job_id)
        self.entry.create("cancel_sent.json", {"at": time.time(), "job_id": job_id})

    def _look(self, settling: bool = False) -> _Look:
        """Everything that can be told now. A job found after its run was cancelled is ended (not ``settling``)."""
        now = time.time()
        summary = self.summary
        here = bool(summary.here)
        first = gather(self.files)
        scheduler = None if here else self._backend.scheduler()
        submission = self._backend.recovery.submission(self.entry, summary, first, scheduler, now)
        cancel = (self.entry.folder / "cancelled.json").exists()
        job_id = first.owner or submission.job_id
        if here:
            seen = inside.seen(submission, now)
        else:
            seen = self._backend.seen(job_id, summary.host) if job_id else Seen()
        # Read again after the question: an end that the scheduler knows of has its record by then.
        evidence = gather(self.files)
        facts = self._facts(submission, cancel, here)
        found = resolve(facts, evidence, seen, time.time())
        if cancel and not settling and found.job_id is not None and not found.state.final:
            self._end_late(found.job_id)
        return _Look(facts, evidence, seen, found, submission.error or seen.error)

    def _end_late(self, job_id: str) -> None:
        if not (self.entry.folder / "cancel_sent.json").exists():
            with contextlib.suppress(MapleError):  # the next look tries again
                self._end(job_id)

    def _facts(self, submission: Submission, cancel: bool, here: bool) -> Facts:
        return Facts(
            submission=submission.state,
            submitted_job=submission.job_id,
            refusal=submission.refusal,
            cancel_asked=cancel,
            walltime=self.summary.walltime,
            outside=here,
            hand=bool(self.summary.hand),
        )

    def _kept(self) -> Outcome | None:
        raw = self.entry.read("outcome.json")
        if raw is None:
            return None
        try:
            kept = Outcome.from_dict(raw)
        except (KeyError, TypeError, ValueError):
            return None  # it can be worked out again
        again = gather(self.files)
        if again.attempt <= kept.attempts:
            return kept
        with contextlib.suppress(OSError):  # somebody had the job start once more: it is active again
            os.unlink(self.entry.folder / "outcome.json")
        return None

    def _conclude(self, look: _Look) -> Outcome:
        summary = self.summary
        outcome = conclude(
            self.id, summary.title, self.files, summary.run_dir, summary.nodes, look.found, look.facts, look.evidence
        )
        if outcome.state in _SURE and look.found.detail != "not asked":
            try:
                self.entry.write("outcome.json", outcome.to_dict())
            except StoreError as error:
                import warnings

                warnings.warn(f"the outcome of run {self.id} is not kept: {error}", RuntimeWarning, stacklevel=2)
        return outcome
