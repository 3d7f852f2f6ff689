"""The scheduler of a site elsewhere: its commands run there, its answers are read here."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maple_parsl.errors import SchedulerError, SubmissionError, TransportError
from maple_parsl.runs.away import bundle, mirror
from maple_parsl.runs.store import Entry, Store, Summary
from maple_parsl.schedulers import clusters_of
from maple_parsl.schedulers.base import JobInfo, JobState, Scheduler, vanished
from maple_parsl.schedulers.commands import DEADLINE, Answer, NotStartedError
from maple_parsl.schedulers.submission import JOB_IDS, judged
from maple_parsl.transport import Transport

if TYPE_CHECKING:
    from maple_parsl.plan import Plan

SUBMIT_SECONDS = 120.0
ASK_SECONDS = 60.0
_NOBODY = ("@UID@", "@USER@")  # filled in at the site


class _Asked(Exception):
    """The command that would be asked next."""

    def __init__(self, argv: tuple[str, ...]) -> None:
        super().__init__(argv)
        self.argv = argv


class AwayScheduler:
    """See :class:`~maple_parsl.schedulers.base.Scheduler`.

    Args:
        store: where the mirrors are. like: a run of the site. transport: the way there.
    """

    def __init__(self, store: Store, like: Summary, transport: Transport) -> None:
        self._store, self._like, self._transport = store, like, transport
        self._ready: dict[tuple[str, ...], Answer] = {}
        self._only_record = False
        self._inner: Scheduler | None = self._reader()

    def _reader(self) -> Scheduler | None:
        """The scheduler whose answers are read; none at a site without one."""
        if self._like.scheduler == "slurm":
            from maple_parsl.schedulers.slurm import Slurm

            return Slurm(self._like.clusters, run=self._run, user=_NOBODY[0])
        if self._like.scheduler == "pbs":
            from maple_parsl.schedulers.pbs import PBS

            return PBS(run=self._run, user=_NOBODY[1])
        return None

    def submit(self, plan: Plan, script_file: Path) -> str:
        """Send the run's files, and have the script submitted there through Parsl."""
        entry = Entry(self._store.runs / _run_id(plan))
        root = str(Path(_place(plan)).parent)
        files = bundle.collect(script_file.parent)
        hashes = [one.sha for one in files]
        try:
            lacking = self._transport.call("where", deadline=ASK_SECONDS, root=root, hashes=hashes)["missing"]
            rest = bundle.stage(
                self._transport, root, files, [sha for sha in hashes if sha in set(lacking)], ASK_SECONDS
            )
        except TransportError as error:  # nothing was submitted yet
            raise NotStartedError(str(error)) from None
        said = self._sent(entry, root, plan, files, rest, script_file.name)
        return self._judged(plan, said)

    def _sent(
        self, entry: Entry, root: str, plan: Plan, files: list[bundle.Bundled], rest: dict[str, str], script: str
    ) -> dict[str, Any]:
        try:
            return self._transport.call(
                "submit",
                deadline=SUBMIT_SECONDS,
                root=root,
                run=entry.id,
                number=max(1, entry.submissions()),
                files=[one.row for one in files],
                contents=rest,
                script=script,
                spec=spec_of(plan),
            )
        except TransportError as error:
            if error.certain:
                raise NotStartedError(str(error)) from None
            raise

    def _judged(self, plan: Plan, said: Mapping[str, Any]) -> str:
        state, words = said.get("state"), str(said.get("said", ""))
        if state == "submitted":
            job_id = str(said.get("job_id"))
            pattern = JOB_IDS.get(plan.scheduler)
            if pattern is not None and not pattern.fullmatch(job_id):
                raise SchedulerError(
                    f"the site named {job_id[:100]!r}, which is no job id; the job is found by its name"
                )
            return job_id
        if state == "judge":
            raise judged(plan.scheduler, words, said.get("code"))
        if state in ("refused", "withdrawn"):
            raise SubmissionError(f"at {self._like.site}: {words}")
        raise SchedulerError(f"at {self._like.site}: {words or 'the answer says nothing'}; the job may exist")

    def query(self, job_ids: Iterable[str]) -> dict[str, JobInfo]:
        """One call for all of them, which brings the mirrors of all active runs of the site up to date too."""
        asked = list(dict.fromkeys(job_ids))
        runs = list(mirror.active(self._store, self._like))
        commands = self._commands(asked)
        local = asked if self._inner is None else []
        sent = time.time()
        said = self._transport.call(
            "status",
            deadline=ASK_SECONDS,
            runs=[mirror.asked(*one) for one in runs],
            commands=[list(argv) for argv in commands],
            local=local,
        )
        skew = float(said["now"]) - (sent + time.time()) / 2
        for entry, summary in runs:
            found = said["runs"].get(Path(summary.run_dir).name)
            if isinstance(found, Mapping):
                mirror.take(entry, found, skew)
        self._ready = {argv: _answer(argv, one) for argv, one in zip(commands, said["commands"], strict=True)}
        try:
            return self._inner.query(asked) if self._inner else _local(asked, said.get("local") or {})
        finally:
            self._ready = {}

    def _commands(self, asked: list[str]) -> list[tuple[str, ...]]:
        """What the scheduler would be asked first."""
        if self._inner is None or not asked:
            return []
        self._only_record = True
        try:
            self._inner.query(asked)
        except _Asked as first:
            return [first.argv]
        finally:
            self._only_record = False
        return []

    def find(self, names: Iterable[str]) -> dict[str, list[JobInfo]]:
        """The run directory is asked first, then the scheduler."""
        found: dict[str, list[JobInfo]] = {}
        for name in names:
            said = self._lookup(name)
            if said and said.get("state") == "submitted":
                job_id = str(said["job_id"])
                found[name] = [JobInfo(job_id, JobState.unknown, "submitted", "process", name=name)]
            elif self._inner is not None:
                found |= self._inner.find([name])
        return found

    def withdraw(self, name: str) -> bool:
        """Make sure that a submission which may still be on its way does nothing when it arrives.

        Returns:
            Whether no job of that name can come to be.
        """
        place = self._of(name)
        if place is None:
            return True
        entry, summary = place
        path = Path(summary.run_dir)
        number = max(1, entry.submissions())
        said = self._transport.call(
            "withdraw", deadline=ASK_SECONDS, root=str(path.parent), run=path.name, number=number
        )
        return bool(said.get("withdrawn"))

    def cancel(self, job_id: str) -> None:
        """End the job there."""
        if self._inner is not None:
            self._inner.cancel(job_id)
        else:
            self._transport.call("cancel", deadline=ASK_SECONDS, job_id=job_id)

    def _lookup(self, name: str) -> dict[str, Any] | None:
        place = self._of(name)
        if place is None:
            return None
        entry, summary = place
        path = Path(summary.run_dir)
        number = max(1, entry.submissions())
        return self._transport.call("lookup", deadline=ASK_SECONDS, root=str(path.parent), run=path.name, number=number)

    def _of(self, name: str) -> tuple[Entry, Summary] | None:
        entry = Entry(self._store.runs / name.removeprefix("maple-"))
        return (entry, entry.summary()) if entry.folder.is_dir() else None

    def _run(self, argv: Sequence[str], *, deadline: float = DEADLINE, **_: Any) -> Answer:
        words = tuple(argv)
        if self._only_record:
            raise _Asked(words)
        if words in self._ready:
            return self._ready[words]
        said = self._transport.call("command", deadline=deadline + ASK_SECONDS, argv=list(words), limit=deadline)
        return _answer(words, said)


def spec_of(plan: Plan) -> dict[str, Any]:
    """What the provider at the site is told; the script says the rest."""
    from maple_parsl.provider import check_directives, checked, walltime_of

    check_directives(plan)
    checked("queue", plan.queue)
    cores = plan.shape.cpus_per_task
    return {
        "kind": plan.scheduler,
        "job_name": plan.job_name,
        "account": checked("account", plan.account),
        "clusters": clusters_of(plan),
        "exclusive": "--exclusive" in {directive.option for directive in plan.directives},
        "nodes": plan.shape.nodes,
        "tasks_per_node": plan.shape.tasks_per_node,
        "cpus_per_node": cores * plan.shape.tasks_per_node if cores else None,
        "walltime": walltime_of(plan),
    }


def _answer(argv: tuple[str, ...], said: Mapping[str, Any]) -> Answer:
    if not said.get("started"):
        raise NotStartedError(f"at the site: {said.get('err')}")
    if said.get("code") is None:
        raise SchedulerError(f"at the site, {argv[0]} gave {said.get('err')}")
    return Answer(argv, int(said["code"]), str(said["out"]), str(said["err"]))


def _local(asked: list[str], alive: Mapping[str, Any]) -> dict[str, JobInfo]:
    gone = "its processes are gone"
    return {
        job_id: JobInfo(job_id, JobState.running, "alive", "process")
        if alive.get(job_id)
        else vanished(job_id, "process", gone)
        for job_id in asked
    }


def _place(plan: Plan) -> str:
    assert plan.place is not None
    return plan.place.run_dir


def _run_id(plan: Plan) -> str:
    assert plan.place is not None
    return plan.place.run_id
