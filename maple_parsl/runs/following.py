"""A log as it is written, until its run has ended; a site that does not answer for a while is asked again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from maple_parsl.errors import TransportError
from maple_parsl.runs.logs import LogPart

if TYPE_CHECKING:
    from maple_parsl.runs.run import Run

PATIENCE = 900.0
"""Seconds without an answer after which following ends; the run goes on."""
_AGAIN = 5.0


def parts(run: Run, offset: int, every: float, told: Callable[[str], None] | None) -> Iterator[LogPart]:
    """See :meth:`maple_parsl.Run.follow`."""
    checked, heard = 0.0, time.monotonic()
    ended = False
    while True:
        try:
            part = run.logs(offset)
        except TransportError as error:
            if time.monotonic() - heard > PATIENCE:
                raise
            if told is not None:
                told(str(error))
            time.sleep(max(every, _AGAIN))
            continue
        offset, heard = part.offset, time.monotonic()
        if part:
            yield part
            continue
        if ended:
            return
        if time.monotonic() - checked >= max(every, 1.0):
            ended, checked = run.outcome() is not None, time.monotonic()
        if not ended:
            time.sleep(every)
