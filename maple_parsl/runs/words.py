"""The state of a run in plain words: what happened, to which rank, and what to do."""

from __future__ import annotations

from typing import Any

from maple_parsl.runs.evidence import Evidence, Exit
from maple_parsl.runs.state import Facts, Resolved, RunState

_SIGNALS = {1: "HUP", 2: "INT", 6: "ABRT", 7: "BUS", 8: "FPE", 9: "KILL", 10: "USR1", 11: "SEGV", 15: "TERM"}


def explain(found: Resolved, facts: Facts, evidence: Evidence, error: str | None = None) -> str:
    """One or two sentences on why the run is where it is."""
    parts = [_main(found, facts, evidence)]
    state = found.state
    if found.exit and found.exit.first_failure and state is not RunState.DONE and state is not RunState.FAILED:
        parts.append(f"before that, {failure(found.exit.first_failure)}")
    if error and not state.final:
        parts.append(f"the scheduler does not answer at present: {error}")
    if not evidence.present and found.job_id:
        parts.append("the run directory is gone (purged or moved), and with it log and exit record")
    return "; ".join(part for part in parts if part)


def failure(first: dict[str, Any]) -> str:
    """The first failing process, such as ``rank 3 on node2 failed first, with code 7``."""
    rank = first.get("rank")
    who = f"rank {rank}" if rank is not None else f"the launcher of node {first.get('node_rank')}"
    return f"{who} on {first.get('host')} failed first, {code(first.get('code'))}"


def findings(verdict: dict[str, Any] | None, severity: str = "") -> list[str]:
    """What a preflight found, as ``message [CLASS]``; the worst first."""
    said = verdict.get("findings") if verdict else None
    known = [item for item in said if isinstance(item, dict)] if isinstance(said, list) else []
    chosen = [item for item in known if severity in ("", item.get("severity"))]
    order = {"error": 0, "warning": 1}
    chosen.sort(key=lambda item: order.get(str(item.get("severity")), 2))
    return [f"{item.get('message')} [{item.get('class')}]" for item in chosen]


def still(report: dict[str, Any] | None) -> str:
    """What a watchdog reported: for how long nothing moved, the slowest rank, how to leave its node out."""
    if not report:
        return "no progress"
    states = {"T": "stopped", "D": "waiting for a disk or device", "Z": "ended", "S": "waiting", "R": "computing"}
    state = states.get(str(report.get("state")), "in an unknown state")
    text = f"no progress for {report.get('seconds')} s; rank {report.get('rank')} on {report.get('host')} is {state}"
    if report.get("samples") != report.get("ranks"):
        text += f"; {report.get('samples')} of {report.get('ranks')} ranks answered"
    return text + (f" ({report['advice']})" if report.get("advice") else "")


def code(value: Any) -> str:
    """An exit code in words; above 128 it stands for a signal."""
    if isinstance(value, int) and 128 < value < 193:
        name = _SIGNALS.get(value - 128, str(value - 128))
        extra = " (often: out of memory)" if value == 137 else ""
        return f"ended by signal {name}{extra}"
    return f"with code {value}"


def _main(found: Resolved, facts: Facts, evidence: Evidence) -> str:
    job, record = found.job, found.exit
    of_scheduler = (job.explanation or "") if job else ""
    match found.state:
        case RunState.SUBMITTING:
            return "the submission is under way, or was cut short; the scheduler is asked before anything is sent again"
        case RunState.NOT_SUBMITTED:
            return "no job was submitted, and the scheduler has none of this name; submit it with maple run --resubmit"
        case RunState.REFUSED:
            return facts.refusal or "the scheduler refused the job"
        case RunState.PENDING if found.detail == "requeued":
            return f"queued again after attempt {evidence.attempt}" + (f"; {of_scheduler}" if of_scheduler else "")
        case RunState.PENDING | RunState.RUNNING if found.detail == "not listed":
            return "the scheduler does not list the job at present"
        case RunState.PENDING | RunState.RUNNING:
            return of_scheduler
        case RunState.ENDING:
            return "the job has ended or is about to; its record or the scheduler's verdict is awaited"
        case RunState.DONE:
            return ""
        case RunState.FAILED:
            return _failed(found, record)
        case RunState.TIMEOUT:
            limit = f" of {facts.walltime // 60} minutes" if facts.walltime else ""
            return f"the walltime{limit} ran out; ask for more, or resume from the last checkpoint"
        case RunState.CANCELLED if found.detail == "skipped":
            return "nothing was left to do: the chain had succeeded, or had failed the same way twice"
        case RunState.CANCELLED:
            return of_scheduler or ("cancelled with maple cancel" if facts.cancel_asked else "the job was cancelled")
        case RunState.PREEMPTED:
            return of_scheduler or "a job of higher priority took the nodes; with --requeue it would start again"
        case RunState.NODE_FAILURE:
            return of_scheduler or "a node of the job failed; run it again, from the last checkpoint"
        case RunState.OUT_OF_MEMORY:
            return of_scheduler or "the job used more memory than it was given; ask for more, or use less per rank"
        case RunState.TERMINATED:
            return (
                "the job was told to end (signal TERM) and the scheduler no longer says why: cancelled, preempted,"
                " or its node was taken down"
            )
        case RunState.UNKNOWN:
            began = "it had started, and left no exit record" if evidence.started else "it left no trace of a start"
            return (
                f"the scheduler no longer knows job {found.job_id}, and {began}; without accounting its end"
                " cannot be told. The log in the run directory may"
            )


def _failed(found: Resolved, record: Exit | None) -> str:
    job = found.job
    if record is not None:
        if record.reason == "setup":
            return f"a set-up line of the script failed {code(record.code)}; the log shows which"
        if record.reason == "allocation":
            return "the job did not get the nodes that the launch needs; the log shows what it got"
        if record.reason == "preflight":
            return f"the preflight ended the job: {'; '.join(findings(record.preflight)) or 'see the log'}"
        if record.reason == "stalled":
            return f"the watchdog ended the job: {still(record.watchdog)}"
        if record.first_failure:
            return failure(record.first_failure)
        if stopped := findings(record.preflight, "error"):
            return "; ".join(stopped)
        return f"the launcher ended {code(record.code)}, and no single process failed first; see the log"
    if found.detail == "of the scheduler" and job:
        ended = f"by signal {job.exit_signal}" if job.exit_signal else code(job.exit_code)
        return f"the script ended {ended}; the log says more"
    said = f" ({job.raw_state}, code {job.exit_code})" if job and job.raw_state else ""
    if found.detail == "never began":
        return (
            f"the job ended{said} before its script could write to the run directory: not visible on the nodes,"
            " or not writable there"
        )
    if job and job.source == "process" and job.explanation:
        return job.explanation
    return f"the job ended{said} without an exit record; its last node died, or the disk was full"
