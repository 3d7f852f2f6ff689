"""The diagnosis of a run: its logs, exit record and the scheduler's verdict, read together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maple_parsl.runs import files
from maple_parsl.runs.logs import NAMES

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


def diagnosed(run: Run, outcome: Outcome | None = None) -> Diagnosis:
    """What failed first in a run; ``outcome`` saves asking for its end again.

    Raises:
        StoreError: the run's records cannot be read.
    """
    from maple_parsl.diagnosis import LogSource, diagnose

    outcome = outcome or run.outcome()
    folder = run.fetched()
    logs = [folder / name for name in NAMES]
    sources = [LogSource(str(path), path=path) for path in logs if path.is_file()]
    return diagnose(
        sources,
        script=run.script.read_text(encoding="utf-8", errors="replace") if run.summary.hand else run.plan.script,
        accounting=_WORDS.get(outcome.state.value) if outcome is not None else None,
        exit_record=files.read(folder / "exit.json"),
    )
