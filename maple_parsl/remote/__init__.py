"""What runs at a site: source text that needs the standard library and, to submit, Parsl.

:func:`source` is sent as it is and run there by whatever Python the site has, 3.9 or newer; ``maple_parsl`` need not
be installed. One function is called, :func:`maple_parsl.remote.entry.entry`: JSON text in, JSON text out. Each
operation is short, and repeating it does no harm.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

ENTRY = "entry"
_PARTS = ("schedulers/environment.py", "remote/folders.py", "remote/jobs.py", "remote/operations.py", "remote/entry.py")
_OWN = re.compile(r"^from (?:__future__|maple_parsl[\w.]*) import (?:\([^)]*\)|[^\n(]*)\n", re.M)


@cache
def source() -> str:
    """The program as one text."""
    root = Path(__file__).parents[1]
    parts = [_OWN.sub("", (root / name).read_text(encoding="utf-8")) for name in _PARTS]
    return "from __future__ import annotations\n\n" + "\n\n".join(parts)


def fingerprint() -> str:
    """SHA-256 of :func:`source`."""
    return hashlib.sha256(source().encode()).hexdigest()
