"""Launching inside the allocation one is in (``salloc``, ``qsub -I``): nothing is submitted."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from maple_parsl.errors import NotHereError, SchedulerError
from maple_parsl.here import ask
from maple_parsl.plan import Plan
from maple_parsl.runs import files, process, submit
from maple_parsl.runs.recover import Submission
from maple_parsl.runs.state import Seen
from maple_parsl.runs.store import Entry
from maple_parsl.schedulers.base import JobInfo, JobState


@dataclass(frozen=True)
class Allocation:
    """What was granted.

    Attributes:
        gpus: per node; None where the scheduler does not say. seconds: of its time that are left, if told.
    """

    job_id: str
    nodes: int
    gpus: int | None = None
    account: str | None = None
    seconds: int | None = None


def allocation(kind: str, environ: Mapping[str, str] | None = None) -> Allocation:
    """The allocation this process is in.

    Raises:
        NotHereError: it is in none.
    """
    environ = os.environ if environ is None else environ
    if kind == "slurm" and (job := environ.get("SLURM_JOB_ID")):
        gpus = environ.get("SLURM_GPUS_ON_NODE", "")
        end = environ.get("SLURM_JOB_END_TIME", "")
        return Allocation(
            job,
            _count(environ.get("SLURM_JOB_NUM_NODES") or environ.get("SLURM_NNODES")),
            int(gpus) if gpus.isdecimal() else None,
            environ.get("SLURM_JOB_ACCOUNT"),
            max(60, int(end) - int(time.time())) if end.isdecimal() else _left(job),
        )
    if kind == "pbs" and (job := environ.get("PBS_JOBID")):
        try:
            hosts = set(Path(environ.get("PBS_NODEFILE", "")).read_text(encoding="utf-8").split())
        except OSError as error:
            raise NotHereError(f"the node list of the allocation (PBS_NODEFILE) cannot be read: {error}") from None
        return Allocation(job, len(hosts))
    command = "qsub -I" if kind == "pbs" else "salloc"
    raise NotHereError(f"--here launches inside an allocation, and this shell is in none; start one with {command}")


def check(plan: Plan, granted: Allocation) -> None:
    """Compare what the launch needs with what was granted.

    Raises:
        NotHereError: the allocation has another number of nodes, or too few GPUs.
    """
    if granted.nodes != plan.shape.nodes:
        raise NotHereError(
            f"allocation {granted.job_id} has {granted.nodes} nodes and the launch needs {plan.shape.nodes};"
            f" state --nodes {granted.nodes}, or get another allocation"
        )
    if plan.torch_device != "cpu" and granted.gpus is not None and granted.gpus < plan.shape.devices:
        raise NotHereError(
            f"allocation {granted.job_id} has {granted.gpus} GPUs on this node and the launch needs"
            f" {plan.shape.devices}; state --gpus-per-node {granted.gpus}, or get another allocation"
        )


def start(entry: Entry, plan: Plan, script: Path, granted: Allocation) -> str:
    """Start the script in a session of its own, which ends with the allocation; the allocation's job id.

    Raises:
        SchedulerError: bash cannot be started. StoreError: the run cannot be recorded.
    """
    entry.create("intent.1.json", {"job_name": plan.job_name, "at": time.time(), "process": process.identity()})
    log = script.parent / "log.txt"
    try:
        with open(log, "ab"):
            pass
    except OSError as error:
        raise files.explained(log, error, "written") from None
    actions = (
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_APPEND, 0),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    )
    try:
        pid = os.posix_spawnp("bash", ["bash", str(script)], os.environ, file_actions=actions, setsid=True)
    except OSError as error:
        raise SchedulerError(f"bash cannot be started: {error.strerror}") from None
    submit.record(entry, 1, granted.job_id, "here", process=process.identity(pid))
    return granted.job_id


def seen(submission: Submission, now: float) -> Seen:
    """What can be told of the script's process from this machine."""
    who = submission.process or {}
    going = process.alive(who)
    if submission.job_id is None or going is None:
        return Seen(error="it runs inside an allocation on another machine; its files are all that can be seen")
    state = JobState.running if going else JobState.failed
    return Seen(JobInfo(submission.job_id, state, "running" if going else "gone", "process"), now, 0.0)


def end(entry: Entry) -> None:
    """Ask the script to end; it tells its processes.

    Raises:
        NotHereError: it runs on another machine.
    """
    sent = entry.read("submitted.1.json") or {}
    who = sent.get("process") or {}
    going = process.alive(who)
    if going is None:
        raise NotHereError(f"the run was started on {who.get('host', 'another machine')}; cancel it there")
    if going:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(who["pid"]), signal.SIGTERM)


def _count(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 1


def _left(job: str) -> int | None:
    """Seconds that are left of a Slurm job, which older Slurm does not put into its environment."""
    said = (ask(["squeue", "--noheader", f"--jobs={job}", "--format=%L"]) or "").strip()
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", said)
    if found is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return max(60, ((days * 24 + hours) * 60 + minutes) * 60 + seconds)
