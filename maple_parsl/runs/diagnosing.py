"""The diagnosis of a run that has ended, from its own files and the scheduler's word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maple_parsl.runs import files

if TYPE_CHECKING:
    from maple_parsl.diagnosis import Diagnosis
    from maple_parsl.runs.outcome import Outcome
    from maple_parsl.runs.run import Run

# How the scheduler's accounting would say it.
_WORDS = {
    "timeout": "State=TIMEOUT",
    "preempted": "State=PREEMPTED",
    "node_failure": "State=NODE_FAIL",
    "out_of_memory": "State=OUT_OF_MEMORY",
    "cancelled": "State=CANCELLED",
}


def diagnosed(run: Run, outcome: Outcome | None) -> Diagnosis:
    """Why a run failed, as far as its logs, its exit record and its end tell."""
    from maple_parsl.diagnosis import LogSource, diagnose

    folder = run.fetched()
    logs = [folder / name for name in ("log.txt", "scheduler.log")]
    sources = [LogSource(str(path), path=path) for path in logs if path.is_file()]
    return diagnose(
        sources,
        script=run.plan.script,
        accounting=_WORDS.get(outcome.state.value) if outcome is not None else None,
        exit_record=files.read(folder / "exit.json"),
    )
