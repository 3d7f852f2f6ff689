"""The errors that a person can mend: one line on stderr, exit code 2, no traceback."""

from __future__ import annotations

EXIT_USAGE = 2
"""Exit code for a command line or an environment that cannot work."""

EXIT_TERMINATED = 143
"""Exit code after SIGTERM, as a shell would report it: 128 + 15."""


class UsageError(Exception):
    """The command line or environment asks for something that cannot work; the message says what to change.

    All ranks see the same command line, so all raise it together: one rank of each host prints it.
    """


class RankError(UsageError):
    """A `UsageError` that may concern this process alone (its device, its RANK): each rank prints it."""
