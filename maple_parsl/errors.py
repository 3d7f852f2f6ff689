"""Every error Maple raises on purpose, and the exit code the command line gives it.

MapleError                     1   (base; never raised itself)
├── RequestError               2   a value in the request is malformed or contradicts another
│   └── UnknownNameError       2   no such model, paradigm, site, queue …; the nearest are named
├── ConfigurationError         3   a site file, template or setting cannot be read
├── ComposeError               4   request and site do not make a plan; every reason is listed
├── SubmissionError            5   the scheduler refused the job, or cannot be asked to take it
├── SchedulerError             6   a scheduler command is missing, hangs, or answers nonsense
│   └── TransportError         6   a site elsewhere did not answer, or refused to
├── StoreError                 7   the run store cannot be read or written
├── LimitError                 8   the job could cost more node-hours than allowed or confirmed
├── NotHereError               9   the site is not this machine and no transport reaches it
├── RunFailedError            10   the job ended and did not succeed
└── InferenceError            11   a language model was asked and gave no usable answer

Exit codes 0 (success) and 130 (interrupted) complete the list. The numbers are stable.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def shortened(text: str, most: int = 600) -> str:
    """Text with its middle left out where it is very long: a value that went wrong may be a whole file."""
    return text if len(text) <= most else f"{text[: most // 2]} … {text[-most // 3 :]}"


class MapleError(Exception):
    """Base of all errors Maple raises on purpose: what was wrong, where, what to do."""

    exit_code = 1


class RequestError(MapleError):
    """A value in the request is malformed or contradicts another."""

    exit_code = 2


class UnknownNameError(RequestError):
    """A name that Maple does not have; the message offers the nearest ones.

    Attributes:
        kind: what was named ("site", "model", …).
        name: the name as stated.
        near: the nearest known names, best first.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        names = sorted(set(known))
        self.kind, self.name = kind, name
        self.near = difflib.get_close_matches(name.lower()[:200], names, n=3, cutoff=0.5)
        text = f"unknown {kind} {shortened(repr(name), 200)}"
        if self.near:
            text += f"; did you mean {' or '.join(self.near)}?"
        elif names:
            text += f"; known: {', '.join(names)}"
        super().__init__(f"{text} {hint}".rstrip())


class ConfigurationError(MapleError):
    """A site file, template file or setting is unreadable or wrong."""

    exit_code = 3


class ComposeError(MapleError):
    """A request and a site that do not make a plan.

    Attributes:
        problems: one sentence per reason, each saying what to do.
    """

    exit_code = 4

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        head = self.problems[0] if len(self.problems) == 1 else "this request cannot be launched:"
        rest = "" if len(self.problems) == 1 else "".join(f"\n  - {p}" for p in self.problems)
        super().__init__(head + rest)


class SubmissionError(MapleError):
    """The scheduler refused the job; its own words are in the message."""

    exit_code = 5


class SchedulerError(MapleError):
    """A scheduler command is missing, does not answer in time, or answers what cannot be read."""

    exit_code = 6


class TransportError(SchedulerError):
    """A site elsewhere could not be asked, did not answer in time, or refused.

    Attributes:
        certain: nothing came of what was asked. Otherwise it may have happened, or may happen later.
    """

    def __init__(self, message: str, *, certain: bool = False) -> None:
        super().__init__(message)
        self.certain = certain


class StoreError(MapleError):
    """The run store cannot be read or written."""

    exit_code = 7


class LimitError(MapleError):
    """The job could cost more than allowed, or needs a confirmation that was not given."""

    exit_code = 8


class NotHereError(MapleError):
    """The site is not this machine, and no transport is configured to reach it."""

    exit_code = 9


class RunFailedError(MapleError):
    """The job ended without success; the exit record says why."""

    exit_code = 10


class InferenceError(MapleError):
    """A language model was asked and gave no usable answer: it is down, slow, too long, or answered nonsense."""

    exit_code = 11
