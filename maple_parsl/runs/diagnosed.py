"""The diagnosis of a run: its logs, exit record and the scheduler's verdict, read together."""

from __future__ import annotations

from maple_parsl.diagnosis import Diagnosis, LogSource, diagnose
from maple_parsl.runs import files
from maple_parsl.runs.logs import NAMES
from maple_parsl.runs.run import Run

# How the scheduler's accounting would say it.
_WORDS = {
    "timeout": "State=TIMEOUT",
    "preempted": "State=PREEMPTED",
    "node_failure": "State=NODE_FAIL",
    "out_of_memory": "State=OUT_OF_MEMORY",
    "cancelled": "State=CANCELLED",
}


def diagnosed(run: Run) -> Diagnosis:
    """What failed first in a run.

    Raises:
        StoreError: the run's records cannot be read.
    """
    outcome = run.outcome()
    folder = run.fetched()
    logs = [folder / name for name in NAMES]
    sources = [LogSource(str(path), path=path) for path in logs if path.is_file()]
    return diagnose(
        sources,
        script=run.script.read_text(encoding="utf-8", errors="replace") if run.summary.hand else run.plan.script,
        accounting=_WORDS.get(outcome.state.value) if outcome is not None else None,
        exit_record=files.read(folder / "exit.json"),
    )
