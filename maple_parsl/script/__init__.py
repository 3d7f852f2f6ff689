"""Batch scripts: a plan written as one, and anyone's read back (:func:`read`, :func:`rank_map`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maple_parsl.script.render import FIXED, ScriptLine, directive_path, launch_line, lines, render

if TYPE_CHECKING:
    from maple_parsl.script.model import Launch, Script
    from maple_parsl.script.rankmap import ScriptRanks, rank_map
    from maple_parsl.script.reader import read

__all__ = [
    "FIXED",
    "Launch",
    "Script",
    "ScriptLine",
    "ScriptRanks",
    "directive_path",
    "launch_line",
    "lines",
    "rank_map",
    "read",
    "render",
]
_LATER = {"Launch": "model", "Script": "model", "ScriptRanks": "rankmap", "rank_map": "rankmap", "read": "reader"}


def __getattr__(name: str) -> Any:
    """The reader is loaded when it is first asked for."""
    if name not in _LATER:
        raise AttributeError(name)
    from importlib import import_module

    return getattr(import_module(f"maple_parsl.script.{_LATER[name]}"), name)
