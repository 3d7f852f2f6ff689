"""The command ``maple``. One module per verb, imported when the verb is used.

Exit codes: 0, 130 when interrupted, otherwise those of :mod:`maple_parsl.errors`.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

from maple_parsl.errors import MapleError

VERBS = {
    "plan": ("maple_parsl.cli.plan", "Say exactly what a launch would be; nothing is submitted."),
    "run": ("maple_parsl.cli.run", "Launch, once, and follow."),
    "extract": ("maple_parsl.cli.extract", "What a request in words states."),
    "chat": ("maple_parsl.cli.chat", "Plan a launch in a conversation."),
    "explain": ("maple_parsl.cli.explain", "Why each line of a script is there, and from where."),
    "preflight": ("maple_parsl.cli.preflight", "Try a launch in an allocation, without the training."),
    "submit": ("maple_parsl.cli.submit", "Check a job script of yours, submit it once, unchanged, and follow it."),
    "launch-line": ("maple_parsl.cli.launch_line", "Only the launcher's command, for a job script of yours."),
    "status": ("maple_parsl.cli.status", "Where a run stands, and why."),
    "logs": ("maple_parsl.cli.logs", "What a run has printed."),
    "top": ("maple_parsl.cli.top", "Runs, live: states, reasons, node-hours, loss, throughput."),
    "report": ("maple_parsl.cli.report", "Write a run as one HTML page."),
    "cancel": ("maple_parsl.cli.cancel", "End runs."),
    "runs": ("maple_parsl.cli.runs", "List runs."),
    "sites": ("maple_parsl.cli.sites", "The sites Maple knows: list, show, check, add, test."),
    "endpoints": ("maple_parsl.cli.endpoints", "The ways to sites elsewhere: list, probe, set up, log in."),
    "doctor": ("maple_parsl.cli.doctor", "What on this machine stands in the way of a launch."),
    "check": ("maple_parsl.cli.check", "Check launch scripts, anyone's, before they queue."),
    "correct": ("maple_parsl.cli.correct", "Put a launch script right, as a diff; nothing is submitted."),
    "mcp": ("maple_parsl.cli.mcp", "Serve plan, check, diagnose and status to assistants (MCP)."),
    "judge": ("maple_parsl.cli.judge", "Run a launch script in a pretended cluster: what would it start?"),
    "bench": ("maple_parsl.cli.bench", "Measure Maple: launches on nine sites, judged by execution."),
    "port": ("maple_parsl.cli.port", "Carry a working script to another site; nothing is submitted."),
    "diagnose": ("maple_parsl.cli.diagnose", "Find the first cause of a failed launch in its logs."),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code is returned, never raised."""
    _open_streams()
    try:
        code = _dispatch(sys.argv[1:] if argv is None else list(argv))
        sys.stdout.flush()
        return code
    except MapleError as error:
        return _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return _quiet()
    except OSError as error:
        reasons = {
            errno.ENOSPC: "the disk is full",
            errno.EDQUOT: "your disk quota is used up",
            errno.EACCES: "permission denied",
            errno.EROFS: "the file system is read-only",
        }
        if error.errno not in reasons:
            raise
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{reasons[error.errno]}", 1)


def _dispatch(argv: list[str]) -> int:
    import typer
    from typer.main import get_command

    from maple_parsl.cli.lazy import LazyGroup

    class Maple(LazyGroup):
        verbs = VERBS

    app = typer.Typer(
        name="maple",
        cls=Maple,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        help="Correct launches of distributed deep-learning training on any GPU cluster.",
    )
    app.callback()(_root)
    try:
        result = get_command(app).main(argv or ["--help"], prog_name="maple", standalone_mode=False)
    except typer.Abort:
        return 130
    except SystemExit as error:  # typer, for a pipe that nobody reads any more
        return _quiet() if error.code else 0
    except Exception as error:
        # Misuse; by what it offers, because typer's own classes for it moved between versions.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        context: Any = getattr(error, "ctx", None)
        hint = f"\n{context.get_usage()}" if context else ""
        return _fail(f"{message()}{hint}", 2)
    return result if isinstance(result, int) else 0


def _open_streams() -> None:
    """Output that was closed goes nowhere; what its encoding lacks is escaped rather than an error."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _root() -> None:
    pass


def _fail(message: str, code: int) -> int:
    from maple_parsl.cli.output import clean

    try:
        sys.stdout.flush()
        sys.stderr.write(f"error: {clean(message)}\n")
    except OSError:
        return code
    return code


def _quiet() -> int:
    """Nobody reads what is printed: say nothing more, not even when Python flushes at its end."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    return 1
