"""What verbs print: one JSON object, or text that is safe and fits the terminal."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import PurePath
from typing import IO, TYPE_CHECKING, Any

from pydantic import BaseModel

from maple_parsl.terminal import clean

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["clean", "console", "emit_json"]


def emit_json(value: Any) -> None:
    """Print one JSON object; models, dataclasses, paths and dates become what JSON has."""
    sys.stdout.write(json.dumps(jsonable(value), indent=2, ensure_ascii=True) + "\n")


def emit_bytes(value: bytes) -> None:
    """Print bytes as they are, whatever the encoding of the terminal."""
    sys.stdout.flush()
    binary = getattr(sys.stdout, "buffer", None)
    if binary is None:  # a stand-in for standard output
        sys.stdout.write(value.decode("utf-8", "replace"))
    else:
        binary.write(value)


def console(*, stderr: bool = False, width: int | None = None) -> Console:
    """A rich console: colour only on a terminal and without NO_COLOR; never narrower than can be read."""
    from rich.console import Console

    stream: IO[str] = sys.stderr if stderr else sys.stdout
    columns = os.environ.get("COLUMNS", "")
    if width is None and not stream.isatty():
        width = int(columns) if columns.isdecimal() and int(columns) else 120
    plain = not stream.isatty() or bool(os.environ.get("NO_COLOR"))
    return Console(
        file=stream,
        width=max(40, width) if width else None,
        color_system=None if plain else "auto",
        force_terminal=False if plain and not stream.isatty() else None,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
        _environ={
            name: value
            for name, value in os.environ.items()
            if name not in ("COLUMNS", "LINES") or (value.isascii() and value.isdecimal())
        },
    )


def jsonable(value: Any) -> Any:
    """A value as JSON has it: models, dataclasses, paths and dates become plain."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): jsonable(inner) for key, inner in value.items()}
    if isinstance(value, set | frozenset):
        value = sorted(value)
    if isinstance(value, list | tuple):
        return [jsonable(inner) for inner in value]
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, PurePath) else value
