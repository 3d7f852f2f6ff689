"""Slurm: squeue for jobs the controller knows, sacct (where there is accounting) for older ones."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from maple_parsl.errors import SchedulerError
from maple_parsl.schedulers import commands, slurm_text
from maple_parsl.schedulers.base import JobInfo, Source, most_telling, vanished
from maple_parsl.schedulers.submission import JOB_IDS, send

if TYPE_CHECKING:
    from maple_parsl.plan import Plan

_ID = JOB_IDS["slurm"]
_NAME = re.compile(r"[^,\x00-\x1f]+")
_NO_ACCOUNTING = re.compile(r"accounting storage is disabled|not running|not configured|Problem talking to", re.I)
_REMEMBERED = "it ended longer ago than Slurm keeps jobs without accounting, or was never there"


class Slurm:
    """See :class:`~maple_parsl.schedulers.base.Scheduler`.

    Args:
        clusters: value for ``--clusters``, where one login node serves several clusters.
        days: how far back :meth:`find` looks in the accounting.
        run: runs a command; elsewhere than here, if need be. user: whose jobs, by name or number.
    """

    def __init__(
        self,
        clusters: str | None = None,
        *,
        days: int = 30,
        deadline: float = commands.DEADLINE,
        run: commands.Runner | None = None,
        user: str | None = None,
    ) -> None:
        if clusters is not None and not re.fullmatch(r"[A-Za-z0-9._,-]+", clusters):
            raise SchedulerError(f"{clusters!r} is not a name of clusters")
        self._clusters = (f"--clusters={clusters}",) if clusters else ()
        self._days, self._deadline = days, deadline
        self._command, self._user = run or commands.run, user or str(os.getuid())
        self._accounting = True  # until sacct says otherwise

    def submit(self, plan: Plan, script_file: Path) -> str:
        """Send the script with sbatch and return the job's id."""
        return send(plan, script_file)

    def query(self, job_ids: Iterable[str]) -> dict[str, JobInfo]:
        """One squeue for all of them; one sacct for those it does not know."""
        named = list(dict.fromkeys(job_ids))
        asked = [job_id for job_id in named if _ID.fullmatch(job_id)]  # one wrong id must not hide the others
        found: dict[str, JobInfo] = {}
        for group in commands.batches(asked):
            found |= _matched(self._squeue(f"--jobs={','.join(group)}"), group)
        missing = [job_id for job_id in asked if job_id not in found]
        if missing and self._accounting:
            for group in commands.batches(missing):
                found |= _matched(self._sacct(f"--jobs={','.join(group)}"), group)
        source: Source = "sacct" if self._accounting else "squeue"
        why = "the accounting does not know it (it may lag behind)" if self._accounting else _REMEMBERED
        return {
            job_id: found.get(job_id) or vanished(job_id, source, f"Slurm does not know this job: {why}.")
            for job_id in named
        }

    def find(self, names: Iterable[str]) -> dict[str, list[JobInfo]]:
        """The user's jobs of these names, the newest last."""
        asked = list(dict.fromkeys(names))
        for name in asked:
            if not _NAME.fullmatch(name):
                raise SchedulerError(f"Slurm cannot look for the job name {name!r}")
        found: dict[str, dict[str, JobInfo]] = {name: {} for name in asked}
        for group in commands.batches(asked):
            rows: list[JobInfo] = []
            if self._accounting:
                since = f"now-{self._days}days"
                rows = self._sacct(f"--name={','.join(group)}", f"--user={self._user}", f"--starttime={since}")
            rows += self._squeue(f"--name={','.join(group)}", f"--user={self._user}")  # it knows better
            for row in rows:
                if row.name in found:
                    found[row.name][row.job_id] = row
        return {name: sorted(jobs.values(), key=_by_number) for name, jobs in found.items()}

    def cancel(self, job_id: str) -> None:
        """End the job with scancel."""
        answer = self._run("scancel", self._checked(job_id))
        gone = re.search(r"Invalid job id|already complet", answer.err, re.I)
        if answer.code != 0 and not gone:
            raise SchedulerError(f"scancel of job {job_id} failed: {answer.complaint}")

    def _run(self, command: str, *options: str) -> commands.Answer:
        return self._command([command, *self._clusters, *options], deadline=self._deadline)

    def _squeue(self, *options: str) -> list[JobInfo]:
        answer = self._run(
            *("squeue", "--noheader", "--all", "--array", "--states=all"),
            *(f"--Format={slurm_text.SQUEUE_FORMAT}", *options),
        )
        if answer.code != 0:
            if re.search(r"Invalid job id", answer.err, re.I):
                return []
            raise SchedulerError(f"squeue failed: {answer.complaint}")
        return slurm_text.squeue(answer.out)

    def _sacct(self, *options: str) -> list[JobInfo]:
        fields = ",".join(slurm_text.SACCT_FIELDS)
        answer = self._run(
            *("sacct", "--allocations", "--noheader", "--parsable2", f"--delimiter={slurm_text.MARK}"),
            *(f"--format={fields}", *options),
        )
        if answer.code != 0:
            if _NO_ACCOUNTING.search(answer.err):
                self._accounting = not re.search("disabled|not configured", answer.err, re.I) and self._accounting
                return []
            raise SchedulerError(f"sacct failed: {answer.complaint}")
        return slurm_text.sacct(answer.out)

    @staticmethod
    def _checked(job_id: str) -> str:
        if not _ID.fullmatch(job_id):
            raise SchedulerError(f"{job_id!r} is not the id of a Slurm job")
        return job_id


def _matched(rows: list[JobInfo], asked: list[str]) -> dict[str, JobInfo]:
    """Which rows answer which id; the parts of an array or of a heterogeneous job are answered as one."""
    if len(rows) > 50 and all("_" not in row.job_id and "+" not in row.job_id for row in rows):
        exact = {row.job_id: row for row in rows}
        return {job_id: exact[job_id] for job_id in asked if job_id in exact}
    found = {}
    for job_id in asked:
        parts = [row for row in rows if slurm_text.belongs(row.job_id, job_id)]
        if parts:
            found[job_id] = parts[0] if len(parts) == 1 else most_telling(parts)
    return found


def _by_number(job: JobInfo) -> tuple[int, str]:
    return int(re.split(r"\D", job.job_id, maxsplit=1)[0]), job.job_id
