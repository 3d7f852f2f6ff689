"""Reading one site file: refusals in plain words, and nothing parsed twice in a process."""

from __future__ import annotations

import math
import os
import re
import stat
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from maple_parsl.errors import ConfigurationError

LARGEST = 1 << 20
Stamp = tuple[int, int]
_SCHEDULER = re.compile(r"^[ \t]*\[?[ \t]*scheduler\b", re.M)
_TABLE = re.compile(r"^[ \t]*\[", re.M)
_STATED = re.compile(r'^(extends|name)[ \t]*=[ \t]*"([^"\n]+)"', re.M)
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
_parsed: dict[Path, tuple[Stamp, dict[str, Any]]] = {}
_heads: dict[Path, tuple[Stamp, Head]] = {}


@dataclass(frozen=True, slots=True)
class Head:
    """The keys before a file's first table.

    Attributes:
        whole: the file seems to define a site, rather than to change a part of one.
        error: why the file cannot be read.
    """

    values: dict[str, Any]
    whole: bool = False
    error: ConfigurationError | None = None

    def text(self, key: str) -> str | None:
        value = self.values.get(key)
        return value if isinstance(value, str) else None


def stamp(path: Path) -> Stamp:
    """What changes when the file changes; raises :class:`ConfigurationError` for what is no readable file."""
    try:
        found = os.stat(path)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    if not stat.S_ISREG(found.st_mode):
        what = "a folder" if stat.S_ISDIR(found.st_mode) else "not a regular file"
        raise ConfigurationError(f"{path} is {what}; a site is one TOML file")
    if found.st_size > LARGEST:
        raise ConfigurationError(
            f"{path} has {found.st_size} bytes; a site file has at most {LARGEST} (is it the right file?)"
        )
    return found.st_mtime_ns, found.st_size


def modified(path: Path) -> date:
    """The day the file was last changed."""
    return date.fromtimestamp(stamp(path)[0] / 1e9)


def read(path: Path) -> dict[str, Any]:
    """The whole file as a table. The result is shared: do not change it."""
    now = stamp(path)
    known = _parsed.get(path)
    if known is None or known[0] != now:
        known = _parsed[path] = now, _parse(path, _text(path))
    return known[1]


def peek(path: Path) -> Head:
    """The keys before the first table, without parsing the rest; never raises."""
    try:
        now = stamp(path)
        known = _heads.get(path)
        if known is None or known[0] != now:
            known = _heads[path] = now, _head(path, _text(path))
        return known[1]
    except ConfigurationError as error:
        return Head({}, error=error)


def _head(path: Path, text: str) -> Head:
    table, whole = _TABLE.search(text), bool(_SCHEDULER.search(text))
    try:
        return Head(tomllib.loads(text[: table.start()] if table else text), whole)
    except (ValueError, RecursionError):
        pass  # perhaps an array over several lines: the whole file decides
    try:
        values = {key: value for key, value in _parse(path, text).items() if not isinstance(value, dict)}
        return Head(values, whole)
    except ConfigurationError as error:
        # Enough to say which site the broken file is about.
        return Head(dict(_STATED.findall(text)), whole, error)


def _text(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            raw = file.read(LARGEST + 1)
    except OSError as error:
        raise _unreadable(path, error) from None
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(f"{path}: line {line} is not UTF-8 text; save the file as UTF-8") from None


def _parse(path: Path, text: str) -> dict[str, Any]:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path} is not valid TOML: {error}") from None
    except (ValueError, RecursionError):
        raise ConfigurationError(f"{path} is not valid TOML: a number or a nesting beyond all bounds") from None
    for key, value in _values(data, ""):
        if isinstance(value, str) and (bad := _CONTROL.search(value)):
            what = "a line break" if bad[0] in "\n\r\u2028\u2029" else f"the control character {bad[0]!r}"
            raise ConfigurationError(f"{path}: {key}: contains {what}; write it as one line of plain text")
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigurationError(f"{path}: {key}: {value} is no fact; leave the key out when it is unknown")
    return data


def _values(value: Any, key: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield f"{key or 'the top level'}, a key", name
            yield from _values(inner, f"{key}.{name}" if key else name)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _values(inner, f"{key}[{index}]")
    else:
        yield key, value


def _unreadable(path: Path, error: OSError | ValueError) -> ConfigurationError:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return ConfigurationError(f"{str(path)!r} cannot be read: {reason.lower()}")
