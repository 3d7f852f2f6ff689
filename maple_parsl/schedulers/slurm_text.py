"""The words of squeue and sacct, read into :class:`JobInfo`."""

from __future__ import annotations

import re
from datetime import datetime

from maple_parsl.errors import SchedulerError
from maple_parsl.schedulers import reasons
from maple_parsl.schedulers.base import JobInfo, JobState, Source

MARK = "\x1f"  # ASCII's own field separator; the name, which may hold anything, comes last
SQUEUE_FIELDS = ("JobArrayID", "JobID", "State", "Reason", "exit_code", "StartTime", "NodeList", "RestartCnt", "Name")
SACCT_FIELDS = ("JobID", "JobIDRaw", "State", "ExitCode", "NodeList", "JobName")
# Width 0 is no width: nothing is cut off or padded.
SQUEUE_FORMAT = ",".join(f"{field}:0{MARK}" for field in SQUEUE_FIELDS[:-1]) + f",{SQUEUE_FIELDS[-1]}:0"

STATES: dict[str, JobState] = {
    "PENDING": JobState.pending,
    "CONFIGURING": JobState.pending,
    "REQUEUED": JobState.pending,
    "REQUEUE_FED": JobState.pending,
    "REQUEUE_HOLD": JobState.pending,
    "RESV_DEL_HOLD": JobState.pending,
    "SPECIAL_EXIT": JobState.pending,
    "RUNNING": JobState.running,
    "COMPLETING": JobState.running,
    "RESIZING": JobState.running,
    "SIGNALING": JobState.running,
    "STAGE_OUT": JobState.running,
    "STOPPED": JobState.running,
    "SUSPENDED": JobState.running,
    "COMPLETED": JobState.done,
    "FAILED": JobState.failed,
    "REVOKED": JobState.failed,
    "LAUNCH_FAILED": JobState.failed,
    "RECONFIG_FAIL": JobState.failed,
    "CANCELLED": JobState.cancelled,
    "TIMEOUT": JobState.timeout,
    "DEADLINE": JobState.timeout,
    "PREEMPTED": JobState.preempted,
    "NODE_FAIL": JobState.node_failure,
    "BOOT_FAIL": JobState.node_failure,
    "POWER_UP_NODE": JobState.pending,
    "OUT_OF_MEMORY": JobState.out_of_memory,
}
_ENDS = {
    JobState.timeout: "It reached its walltime (or its deadline) and was ended.",
    JobState.preempted: "A job with more right to the nodes took them.",
    JobState.node_failure: "One of its nodes failed.",
    JobState.out_of_memory: "A process used more memory than the job had.",
    JobState.cancelled: "It was cancelled.",
}
_JOB_ID = re.compile(r"\d+(?:[_+](?:\d+|\[[^\]]*\]))?")


def squeue(text: str) -> list[JobInfo]:
    """The rows of ``squeue -O`` with :data:`SQUEUE_FORMAT`; raises SchedulerError for anything else."""
    return [_queued(row) for row in _rows(text, len(SQUEUE_FIELDS), "squeue")]


def sacct(text: str) -> list[JobInfo]:
    """The rows of ``sacct --parsable2`` with :data:`SACCT_FIELDS`; raises SchedulerError for anything else."""
    found = []
    for job_id, _, raw, code, nodes, name in _rows(text, len(SACCT_FIELDS), "sacct"):
        status, _, signal = code.partition(":")
        exit_code = int(status) if status.isdecimal() else None
        exit_signal = int(signal) if signal.isdecimal() and signal != "0" else None
        host_list = nodes if nodes not in ("", "None assigned") else None
        found.append(_job(job_id, name, raw, None, exit_code, exit_signal, None, host_list, None, "sacct"))
    return found


def _rows(text: str, fields: int, command: str) -> list[list[str]]:
    rows: list[list[str]] = []
    for line in text.split("\n"):
        if not line.strip(" \t\r") or line.startswith("CLUSTER:"):
            continue
        row = line.split(MARK, fields - 1)
        if len(row) == fields and _JOB_ID.match(row[0].strip()):
            rows.append([part.strip() for part in row])
        elif rows and MARK not in line:
            rows[-1][-1] += "\n" + line  # a job name with a line break
        else:
            raise SchedulerError(f"{command} answered what cannot be read: {line.strip()[:200]!r}")
    return rows


def _queued(row: list[str]) -> JobInfo:
    job_id, _, raw, reason, status, start, nodes, restarts, name = row
    state = STATES.get(raw.split()[0] if raw else "", JobState.unknown)
    code = signal = None
    if state.ended and status.isdecimal():  # as wait() gives it
        code, signal = int(status) >> 8, int(status) & 127 or None
    estimate = epoch(start) if state is JobState.pending else None
    again = int(restarts) if restarts.isdecimal() else None
    return _job(job_id, name, raw, reason, code, signal, estimate, nodes or None, again, "squeue")


def _job(
    job_id: str,
    name: str,
    raw: str,
    reason: str | None,
    code: int | None,
    signal: int | None,
    estimate: float | None,
    nodes: str | None,
    restarts: int | None,
    source: Source,
) -> JobInfo:
    state = STATES.get(raw.split()[0].rstrip("+") if raw else "", JobState.unknown)
    meaning = reasons.slurm(reason) if reason and state is not JobState.running else None
    text = _ENDS.get(state) or (meaning.text if meaning else None)
    if state is JobState.cancelled and (by := re.search(r"by (\d+)", raw)):
        text = f"It was cancelled by user {by[1]}."
    if state is JobState.unknown:
        text = f"Slurm calls its state {raw!r}, which Maple does not know."
    ended = state.ended
    return JobInfo(
        job_id=job_id,
        state=state,
        raw_state=raw,
        source=source,
        name=name or None,
        reason=reason if reason not in (None, "", "None") else None,
        explanation=text,
        never=bool(meaning and meaning.never and state is JobState.pending),
        exit_code=code if ended else None,
        exit_signal=signal if ended else None,
        start_estimate=estimate,
        nodes=nodes,
        restarts=restarts,
    )


def epoch(text: str) -> float | None:
    """Slurm's local time as seconds since 1970; None where it has none."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def belongs(row_id: str, asked: str) -> bool:
    """Whether a row (``12``, ``12_3``, ``12_[4-9]``, ``12+1``) is the job asked for, or a part of it."""
    return row_id == asked or re.split(r"[_+]", row_id, maxsplit=1)[0] == asked or _in_range(row_id, asked)


def _in_range(row_id: str, asked: str) -> bool:
    base, _, element = asked.partition("_")
    match = re.fullmatch(rf"{re.escape(base)}_\[([^\]%]*)(?:%\d+)?\]", row_id)
    if not match or not element.isdecimal():
        return False
    for part in match[1].split(","):
        first, _, last = part.partition("-")
        last = last.partition(":")[0]
        if first.isdecimal() and int(first) <= int(element) <= int(last if last.isdecimal() else first):
            return True
    return False
