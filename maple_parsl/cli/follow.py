"""Following a run on a terminal: its log, or a line that tells step and loss."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from maple_parsl.cli.output import clean
from maple_parsl.runs.state import RunState

if TYPE_CHECKING:
    from maple_parsl.runs.outcome import Outcome
    from maple_parsl.runs.run import Run


def attend(run: Run, *, show_log: bool, quiet: bool = False) -> Outcome:
    """Wait for the end, showing the log or the progress; the outcome."""
    if show_log:
        follow_log(run)
        return run.end()
    if quiet or not sys.stderr.isatty():
        return run.end()
    try:
        while not run.wait(1.0):
            sys.stderr.write(f"\r\x1b[K{clean(progress(run))}")
            sys.stderr.flush()
    finally:
        sys.stderr.write("\r\x1b[K")
    return run.end()


def restarted(run: Run) -> Run | None:
    """The attempt that takes the place of a run that failed, if there is one; what was decided, and why, is said."""
    later = run.following()
    if run.summary.restarts and run.state not in (RunState.DONE, RunState.CANCELLED):
        from maple_parsl.runs.restart import told

        for line in told(run):
            sys.stderr.write(f"note: {clean(line)}\n")
    return later


def progress(run: Run) -> str:
    """One line: state, step, loss, speed."""
    status, found = run.status(), run.metrics
    text = f"{time.strftime('%H:%M:%S')} {status.state.value}"
    if found is not None and found.last_loss is not None:
        text += f", step {found.steps}, loss {found.last_loss:.4f}"
        if found.samples_per_s:
            text += f", {found.samples_per_s:.1f} samples/s"
    elif status.explanation:
        text += f": {status.explanation}"
    return text[:200]


def follow_log(run: Run, offset: int = 0) -> None:
    """Print the log as it is written, until the run has ended. To a terminal nothing that could drive it."""
    terminal = sys.stdout.isatty()
    for part in run.follow(offset, every=0.5, told=_asked_again):
        sys.stdout.write(clean(part) if terminal else part)
        sys.stdout.flush()


def _asked_again(why: str) -> None:
    sys.stderr.write(f"{clean(why)}; the run goes on and is asked for again\n")


def detached(run: Run) -> None:
    """Say that leaving is not cancelling."""
    sys.stderr.write(f"\nleft; the run goes on. maple logs -f {run.id} follows it, maple cancel {run.id} ends it\n")
