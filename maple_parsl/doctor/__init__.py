"""What is in the way of a launch from this machine: each check says what it saw and what to do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping

from maple_parsl.catalogue import Catalogue
from maple_parsl.doctor import places, reach, sites, software
from maple_parsl.doctor.check import Asked, Check, Verdict
from maple_parsl.errors import MapleError

__all__ = ["Asked", "Check", "Verdict", "examine"]


def examine(catalogue: Catalogue, environ: Mapping[str, str] | None = None, asked: Asked | None = None) -> list[Check]:
    """All checks, in the order a person would make them; each command has a deadline.

    Nothing is submitted or changed. A small file is written to folders of Maple's that are there, and removed: only
    that shows a quota that is used up, and the clock of a file system.
    """
    environ = os.environ if environ is None else environ
    asked = asked or Asked()
    parts: list[Callable[[], Iterator[Check]]] = [
        lambda: software.machine(environ),
        lambda: places.store(environ),
        lambda: sites.files(catalogue),
        lambda: sites.here(catalogue, environ, asked),
        lambda: places.run_root(catalogue, environ, asked),
        lambda: software.environment(catalogue, environ, asked),
        lambda: reach.ways(catalogue, asked),
        lambda: software.devices(environ),
    ]
    found: list[Check] = []
    for part in parts:
        try:
            found += part()
        except MapleError as error:
            found.append(Check("maple", "fault", str(error)))
    return found
