"""What qstat says, read into :class:`JobInfo`, also where its JSON is broken."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

from maple_parsl.errors import SchedulerError
from maple_parsl.schedulers import reasons
from maple_parsl.schedulers.base import JobInfo, JobState

STATES = {
    "Q": JobState.pending,
    "H": JobState.pending,
    "W": JobState.pending,
    "T": JobState.pending,
    "M": JobState.unknown,
    "R": JobState.running,
    "B": JobState.running,
    "E": JobState.running,
    "S": JobState.running,
    "U": JobState.running,
}
# Exit_status below 0 is PBS's own: the script did not end by itself.
_OWN_CODES: dict[int, tuple[JobState, str]] = {
    -1: (JobState.failed, "PBS could not start it, before any file was copied."),
    -2: (JobState.failed, "PBS could not start it, after its files were copied."),
    -3: (JobState.failed, "PBS could not start it and gave up trying."),
    -4: (JobState.node_failure, "Its first node was restarted while it ran."),
    -5: (JobState.node_failure, "Its first node was restarted while it ran."),
    -6: (JobState.node_failure, "Its first node was restarted while it ran."),
    -7: (JobState.failed, "It could not be restarted."),
    -10: (JobState.failed, "Its user or group is not known on the nodes."),
    -11: (JobState.preempted, "It was stopped to be run again."),
    -13: (JobState.failed, "Its password or credential was refused on the nodes."),
    -16: (JobState.failed, "A hook of the site refused it, to be run again."),
    -17: (JobState.failed, "A hook of the site removed it."),
    -18: (JobState.failed, "A hook of the site stopped it, to be run again."),
    -19: (JobState.failed, "A hook of the site removed it."),
    -20: (JobState.node_failure, "One of its nodes failed."),
    -24: (JobState.failed, "It used more cores than it asked for."),
    -25: (JobState.failed, "It used more cores than it asked for."),
    -26: (JobState.out_of_memory, "It used more virtual memory than it asked for."),
    -27: (JobState.out_of_memory, "It used more memory than it asked for."),
    -28: (JobState.timeout, "It used more processor time than it asked for."),
    -29: (JobState.timeout, "It reached its walltime and was ended."),
    -30: (JobState.node_failure, "One of its nodes did not join the job."),
}
_FIELDS = ("Job_Name", "job_state", "comment", "exec_host", "queue")
_NUMBERS = ("Exit_status", "run_count", "substate")


def jobs(text: str) -> dict[str, JobInfo]:
    """The jobs in the output of ``qstat -f -F json``.

    PBS writes JSON that no parser takes where a job's name or environment holds certain characters; the few
    fields that matter are then picked out one by one.

    Raises:
        SchedulerError: the output is no answer of qstat at all.
    """
    if not text.strip():
        return {}
    try:
        raw = json.loads(text, strict=False)
    except ValueError:
        if '"pbs_version"' not in text and '"Jobs"' not in text:
            line = text.strip().splitlines()[0][:200]
            raise SchedulerError(f"qstat answered what cannot be read: {line!r}") from None
        entries = _picked(text)
    else:
        found = raw.get("Jobs", {}) if isinstance(raw, dict) else None
        if not isinstance(found, dict):
            raise SchedulerError(f"qstat answered what cannot be read: {text.strip()[:200]!r}")
        entries = {key: value for key, value in found.items() if isinstance(value, dict)}
    return {job_id: _info(job_id, fields) for job_id, fields in entries.items()}


def _picked(text: str) -> dict[str, dict[str, Any]]:
    """The jobs of broken JSON: PBS writes one attribute a line, a job's id two tabs in."""
    entries: dict[str, dict[str, Any]] = {}
    current: dict[str, Any] | None = None
    for line in text.splitlines():
        if head := re.fullmatch(r'\t\t"(\d[^"]*)":\s*\{\s*', line):
            current = entries.setdefault(head[1], {})
        elif current is not None and (field := re.fullmatch(r'\t\t\t"(\w+)":\s*(.*?),?\s*', line)):
            name, value = field.groups()
            if name in _FIELDS and name not in current:
                current[name] = value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value
            elif name in _NUMBERS and re.fullmatch(r"-?\d+", value):
                current.setdefault(name, int(value))
    return entries


def _info(job_id: str, fields: dict[str, Any]) -> JobInfo:
    raw = str(fields.get("job_state", ""))
    comment = fields.get("comment")
    comment = comment if isinstance(comment, str) and comment else None
    status = _number(fields.get("Exit_status"))
    state, text = STATES.get(raw, JobState.unknown), None
    meaning = reasons.pbs(comment) if comment and state is JobState.pending else None
    code = signal = None
    if raw in ("F", "X"):
        state, text = _ended(status, _number(fields.get("substate")), comment or "")
        code = status if status is not None and 0 <= status <= 256 else None
        signal = status - 256 if status is not None and status > 256 else None
    elif meaning:
        text = meaning.text
    elif raw == "H":
        text = "It is held; its owner releases it with qrls, or an administrator does."
    elif raw == "W":
        text = "It may not start before its begin time."
    elif raw == "S":
        text = "It is suspended: a job with more right to the nodes runs."
    elif raw == "M":
        text = "It was moved to another PBS server."
    runs = _number(fields.get("run_count"))
    return JobInfo(
        job_id=job_id,
        state=state,
        raw_state=raw,
        source="qstat",
        name=str(fields["Job_Name"]) if "Job_Name" in fields else None,
        reason=comment,
        explanation=text,
        never=bool(meaning and meaning.never),
        exit_code=code,
        exit_signal=signal,
        start_estimate=_estimate(fields.get("estimated")) if state is JobState.pending else None,
        nodes=str(fields["exec_host"]) if fields.get("exec_host") else None,
        restarts=max(0, runs - 1) if runs is not None else None,
    )


def _ended(status: int | None, substate: int | None, comment: str) -> tuple[JobState, str | None]:
    if status is None or substate == 91 or "terminated by" in comment:
        by = re.search(r"(?:terminated|deleted) by (\S+)", comment)
        who = f" by {by[1].split('@')[0]}" if by else ""
        return JobState.cancelled, f"It was deleted{who}" + (" before it started." if status is None else ".")
    if status == 0:
        return JobState.done, None
    if status in _OWN_CODES:
        return _OWN_CODES[status]
    if status < 0:
        return JobState.failed, f"PBS ended it with its own code {status}."
    if status > 256:
        ended = f"Signal {status - 256} ended the batch script"
        return (JobState.cancelled, f"{ended}: it was deleted.") if status == 271 else (JobState.failed, f"{ended}.")
    return JobState.failed, "The batch script ended with an exit code that is not zero."


def _number(value: object) -> int | None:
    try:
        return int(value) if isinstance(value, (int, str)) else None
    except ValueError:
        return None


def _estimate(value: object) -> float | None:
    start = value.get("start_time") if isinstance(value, dict) else None
    if isinstance(start, (int, float)):
        return float(start)
    try:
        return datetime.strptime(str(start), "%a %b %d %H:%M:%S %Y").timestamp()
    except ValueError:
        return None
