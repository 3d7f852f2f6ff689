"""The difference of two texts as a unified diff."""

from __future__ import annotations

import difflib


def unified(old: bytes, new: bytes, name: str) -> str:
    """The diff; empty where nothing differs. Bytes that are no UTF-8 are replaced by visible signs."""
    before, after = _rows(old), _rows(new)
    lines = difflib.unified_diff(before, after, f"a/{name.lstrip('/')}", f"b/{name.lstrip('/')}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _rows(data: bytes) -> list[str]:
    rows = data.decode("utf-8", "replace").split("\n")
    return [f"{row}\n" for row in rows[:-1]] + ([rows[-1]] if rows[-1] else [])
