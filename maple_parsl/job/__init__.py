"""Shell that runs inside a job. It needs only sh, coreutils and the scheduler's own commands."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def text(name: str) -> str:
    """The text of a shipped shell file, without its leading licence or lint comments."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
