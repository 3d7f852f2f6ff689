"""What a run kept back because its nodes reach no network, and the command that sends it on."""

from __future__ import annotations

import shlex
from pathlib import Path

from maple_parsl.errors import MapleError
from maple_parsl.runs.run import Run

_SLACK = 60.0


def command(run: Run) -> str | None:
    """The line to type on a login node, or None where nothing was kept back."""
    if run.summary.hand:
        return None
    try:
        offline = any(e.name == "WANDB_MODE" and e.value == "offline" for e in run.plan.exports)
    except MapleError:
        return None
    if not offline:
        return None
    found = [path for folder in (run.run_dir, Path(run.summary.work_dir)) for path in _offline(folder, run)]
    return f"wandb sync {shlex.join(map(str, dict.fromkeys(found)))}" if found else None


def _offline(folder: Path, run: Run) -> list[Path]:
    """Offline runs that this run can have written."""
    since = run.summary.created - _SLACK
    try:
        return [path for path in sorted(folder.glob("wandb/offline-run-*")) if path.stat().st_mtime >= since]
    except OSError:
        return []
