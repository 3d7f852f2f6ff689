"""Batch scripts: a plan written as one (``render``), and anyone's read back (:func:`read`, :func:`rank_map`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maple_parsl.script.model import Launch, Script
    from maple_parsl.script.rankmap import ScriptRanks, rank_map
    from maple_parsl.script.reader import read

__all__ = ["Launch", "Script", "ScriptRanks", "rank_map", "read"]
_LATER = {"Launch": "model", "Script": "model", "ScriptRanks": "rankmap", "rank_map": "rankmap", "read": "reader"}


def __getattr__(name: str) -> Any:
    """The reader is loaded when it is first asked for."""
    if name not in _LATER:
        raise AttributeError(name)
    from importlib import import_module

    return getattr(import_module(f"maple_parsl.script.{_LATER[name]}"), name)
