"""Submitting exactly once: an intent on file, then the scheduler, then the job id on file.

A crash between any two of these is put right by :mod:`maple_parsl.runs.recover`; should two jobs of one run
ever exist, the script's first act lets only one of them work.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from maple_parsl.errors import SchedulerError, StoreError, SubmissionError
from maple_parsl.plan import Plan
from maple_parsl.runs import process
from maple_parsl.runs.store import Entry
from maple_parsl.schedulers.base import Scheduler
from maple_parsl.schedulers.commands import NotStartedError


def submit(entry: Entry | Sequence[Entry], plan: Plan, script: Path, scheduler: Scheduler, *, number: int = 1) -> str:
    """Send the script of a stored run, or of all elements of an array; the job id.

    Args:
        entry: the run; for an array its elements, in order of their indices.
        number: which submission of the run this is. Higher than 1 only when a person asked for another.

    Raises:
        SubmissionError: the scheduler refused; no job exists, and that is on file.
        NotStartedError: the command to submit is not there; no job exists, and that is on file.
        SchedulerError: it is not known whether a job exists; the intent stays on file.
        StoreError: the intent cannot be written, or another process is submitting this run; nothing was sent.
    """
    entries = [entry] if isinstance(entry, Entry) else list(entry)
    array = bool(plan.array and plan.array.range)

    def send() -> str:
        return scheduler.submit(plan, script)

    return once(entries, plan.job_name, plan.poll_seconds, script, send, number=number, array=array)


def once(
    entries: Sequence[Entry],
    name: str,
    poll_seconds: int,
    script: Path,
    send: Callable[[], str],
    *,
    number: int = 1,
    array: bool = False,
) -> str:
    """Send what ``send`` sends, with an intent on file before and the job id after; see :func:`submit`."""
    intent = {
        "job_name": name,
        "at": time.time(),
        "process": process.identity(),
        "script": str(script),
        "poll_seconds": poll_seconds,
    }
    first = entries[0]
    for each in entries:
        if not each.create(f"intent.{number}.json", intent):
            raise StoreError(f"another process is submitting run {each.id} already; maple status {each.id} follows it")
    try:
        job_id = send()
    except (SubmissionError, NotStartedError) as error:
        for each in entries:
            each.create(f"refused.{number}.json", {"at": time.time(), "message": str(error)})
        raise
    except SchedulerError as error:
        raise SchedulerError(
            f"{error}\nIt is not certain whether a job exists. Nothing is sent again by itself: maple status"
            f" {first.id} asks the scheduler for a job named {name} and says"
        ) from error
    for index, each in enumerate(entries):
        record(each, number, element_of(job_id, index) if array else job_id)
    return job_id


def element_of(job_id: str, index: int) -> str:
    """The id of an array's element: ``12_3`` of Slurm's ``12``, ``12[3].server`` of PBS's ``12[].server``.

    An id that names an element, or the elements that still wait (``12_[4-9]``), stands for its array.
    """
    if match := re.fullmatch(r"(\d+)\[[^\]]*\](.*)", job_id):
        return f"{match[1]}[{index}]{match[2]}"
    return f"{job_id.partition('_')[0]}_{index}"


def record(entry: Entry, number: int, job_id: str, found: str = "submitted", **more: object) -> None:
    """Note the job id. That it cannot be noted is no reason to lose the job: it is found again by name."""
    try:
        entry.create(f"submitted.{number}.json", {"job_id": job_id, "at": time.time(), "how": found, **more})
    except StoreError as error:
        warnings.warn(
            f"job {job_id} of run {entry.id} was submitted, but {error}; it will be found by its name",
            RuntimeWarning,
            stacklevel=3,
        )
