"""PBS: qstat for jobs and, where the server keeps a history, for ended ones."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from maple_parsl.errors import SchedulerError
from maple_parsl.schedulers import commands, pbs_text
from maple_parsl.schedulers.base import JobInfo, most_telling, vanished
from maple_parsl.schedulers.submission import JOB_IDS, send

if TYPE_CHECKING:
    from maple_parsl.plan import Plan

_ID = JOB_IDS["pbs"]
_UNKNOWN = re.compile(r"unknown job id|has finished|job has been moved|illegally formed job identifier", re.I)
_NO_HISTORY = re.compile(r"history", re.I)
_FORGOTTEN = "it ended longer ago than the server keeps its history, or was never there"
_FEW_NAMES = 3


class PBS:
    """See :class:`~maple_parsl.schedulers.base.Scheduler`.

    Args:
        run: runs a command; elsewhere than here, if need be. user: whose jobs.
    """

    def __init__(
        self,
        *,
        deadline: float = commands.DEADLINE,
        run: commands.Runner | None = None,
        user: str | None = None,
    ) -> None:
        self._deadline, self._user = deadline, user
        self._command = run or commands.run
        self._history: tuple[str, ...] = ("-x",)  # until the server says it keeps none

    def submit(self, plan: Plan, script_file: Path) -> str:
        """Send the script with qsub and return the job's id."""
        return send(plan, script_file)

    def query(self, job_ids: Iterable[str]) -> dict[str, JobInfo]:
        """One qstat for all of them."""
        asked = list(dict.fromkeys(job_ids))
        rows: dict[str, JobInfo] = {}
        # One wrong id must not hide the others.
        for group in commands.batches([job_id for job_id in asked if _ID.fullmatch(job_id)]):
            rows |= self._qstat(group)
        return {job_id: _matched(job_id, rows) or self._vanished(job_id) for job_id in asked}

    def find(self, names: Iterable[str]) -> dict[str, list[JobInfo]]:
        """The user's jobs of these names, the newest last; ended ones where the server keeps a history."""
        asked = list(dict.fromkeys(names))
        found: dict[str, list[JobInfo]] = {name: [] for name in asked}
        if not asked:
            return found
        ids: list[str] = []
        user = ("-u", self._user or pwd.getpwuid(os.getuid()).pw_name)
        # A list of names is not one of its options; many names cost less as one list of all jobs.
        for options in [("-N", name) for name in asked] if len(asked) <= _FEW_NAMES else [()]:
            ids += self._qselect(*user, *options)
        for group in commands.batches(ids):
            for job in self._qstat(group).values():
                if job.name in found:
                    found[job.name].append(job)
        return {name: sorted(jobs, key=_by_number) for name, jobs in found.items()}

    def cancel(self, job_id: str) -> None:
        """End the job with qdel."""
        answer = self._command(["qdel", _checked(job_id)], deadline=self._deadline)
        if answer.code != 0 and not _UNKNOWN.search(answer.err) and "invalid state" not in answer.err:
            raise SchedulerError(f"qdel of job {job_id} failed: {answer.complaint}")

    def _vanished(self, job_id: str) -> JobInfo:
        why = _FORGOTTEN if self._history else "the server keeps no history, so an ended job is forgotten at once"
        return vanished(job_id, "qstat", f"PBS does not know this job: {why}.")

    def _qselect(self, *options: str) -> list[str]:
        answer = self._asked("qselect", *options)
        if answer.code != 0:
            raise SchedulerError(f"qselect failed: {answer.complaint}")
        ids = answer.out.split()
        for job_id in ids:
            if not _ID.fullmatch(job_id):
                raise SchedulerError(f"qselect answered what cannot be read: {answer.first_line!r}")
        return ids

    def _qstat(self, ids: Sequence[str]) -> dict[str, JobInfo]:
        answer = self._asked("qstat", "-f", "-F", "json", *(("-t",) if any("[" in i for i in ids) else ()), *ids)
        if answer.code != 0 and not _UNKNOWN.search(answer.err):  # else the jobs it does know are there
            raise SchedulerError(f"qstat failed: {answer.complaint}")
        return pbs_text.jobs(answer.out)

    def _asked(self, command: str, *options: str) -> commands.Answer:
        answer = self._command([command, *self._history, *options], deadline=self._deadline)
        if answer.code != 0 and self._history and _NO_HISTORY.search(answer.err) and not _UNKNOWN.search(answer.err):
            self._history = ()
            answer = self._command([command, *options], deadline=self._deadline)
        return answer


def _checked(job_id: str) -> str:
    if not _ID.fullmatch(job_id):
        raise SchedulerError(f"{job_id!r} is not the id of a PBS job")
    return job_id


def _matched(job_id: str, rows: dict[str, JobInfo]) -> JobInfo | None:
    """The row of a job; servers may shorten or complete their own name in it."""
    if job_id in rows and "[]" not in job_id:
        return rows[job_id]
    number, _, server = job_id.partition(".")
    parts = []
    for row_id, row in rows.items():
        other, _, where = row_id.partition(".")
        same_server = not server or not where or server.startswith(where) or where.startswith(server)
        element = number.endswith("[]") and other.startswith(number[:-1])
        if same_server and (other == number or element):
            parts.append(row)
    return most_telling(parts) if parts else None


def _by_number(job: JobInfo) -> tuple[int, str]:
    digits = re.match(r"\d+", job.job_id)
    return int(digits[0]) if digits else 0, job.job_id
