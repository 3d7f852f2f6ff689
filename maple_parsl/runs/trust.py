"""Lines of other people's site files are shown once before they are used, and again when they change.

That they were shown is kept as ``$MAPLE_HOME/seen/<digest>.json`` in the user's own folder.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from maple_parsl.catalogue import SiteRecord
from maple_parsl.catalogue.foreign import Foreign, foreign
from maple_parsl.errors import LimitError
from maple_parsl.runs import files


def check(record: SiteRecord, home: Path, *, yes: bool = False, ask: Callable[[str], bool] | None = None) -> None:
    """Show what a shared file would run or charge, unless it was shown before.

    Args:
        home: the user's folder. yes: agreed beforehand; the lines are shown all the same.
        ask: puts a question to a person; None where nobody is there.

    Raises:
        LimitError: nobody agreed. StoreError: that they were shown cannot be kept.
    """
    folder = home / "seen"
    for part in foreign(record):
        mark = folder / f"{part.digest}.json"
        if files.read(mark) is not None:
            continue
        text = _shown(part)
        if yes:
            sys.stderr.write(f"{text}\n")
        elif ask is None:
            raise LimitError(
                f"{text}\nNobody has looked at these lines yet: run it once at a terminal, or confirm with --yes"
                " (yes=True). Nothing was submitted"
            )
        elif not ask(f"{text}\nUse them?"):
            raise LimitError(f"the lines of {part.file} were not agreed to; nothing was submitted")
        files.make_folder(folder)
        files.create(mark, {"file": str(part.file), "layer": part.layer, "lines": part.lines, "at": time.time()})


def _shown(part: Foreign) -> str:
    whose = "named by its path" if part.layer == "path" else f"of the {part.layer}'s files"
    rows = "\n".join(f"    {_plain(line)}" for line in part.lines)
    return f"{part.file} ({whose}) is new or has changed, and puts into your job:\n{rows}"


def _plain(line: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in line)
