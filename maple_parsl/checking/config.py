"""``.maple.toml``: what a project wants checked, and how."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from maple_parsl.errors import ConfigurationError, UnknownNameError

NAME = ".maple.toml"
_KEYS = ("sites", "disable", "baseline", "strict")


@dataclass(frozen=True)
class Config:
    """The ``[check]`` table.

    Attributes:
        folder: where the file is; patterns and the baseline are relative to it.
        sites: (pattern, site), the first that matches counts. disable: rule ids.
        baseline: file of known findings. strict: warnings fail too.
    """

    folder: Path
    sites: tuple[tuple[str, str], ...] = ()
    disable: tuple[str, ...] = ()
    baseline: Path | None = None
    strict: bool = False

    def site_of(self, file: Path) -> str | None:
        """The site fixed for a file."""
        try:
            name = file.absolute().relative_to(self.folder.absolute()).as_posix()
        except ValueError:
            return None
        return next((site for pattern, site in self.sites if _glob(pattern).fullmatch(name)), None)


def find(start: Path) -> Path | None:
    """The nearest ``.maple.toml`` in a folder or above it."""
    start = start.absolute()
    for folder in (start, *start.parents):
        if (folder / NAME).is_file():
            return folder / NAME
    return None


def load(path: Path, known: Collection[str]) -> Config:
    """Read it; ``known``: rule ids.

    Raises:
        ConfigurationError: it cannot be read, or has a key or rule that does not exist.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path}: this is not TOML: {error}") from None
    for name in data:
        _known(path, "table", name, ("check",))
    table = data.get("check", {})
    if not isinstance(table, dict):
        raise ConfigurationError(f"{path}: check: must be a table, [check]")
    for name in table:
        _known(path, "key", name, _KEYS, "check.")
    for rule in (disable := _words(path, table, "disable")):
        _known(path, "rule", rule, known, "check.disable: ")
    baseline, strict = table.get("baseline"), table.get("strict", False)
    if baseline is not None and (not isinstance(baseline, str) or not baseline):
        raise ConfigurationError(f"{path}: check.baseline: must be the name of a file, in quotes")
    if not isinstance(strict, bool):
        raise ConfigurationError(f"{path}: check.strict: must be true or false")
    folder = path.parent
    return Config(folder, _sites(path, table), disable, folder / baseline if baseline else None, strict)


def _sites(path: Path, table: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    sites = table.get("sites", {})
    if not isinstance(sites, dict) or not all(isinstance(site, str) for site in sites.values()):
        raise ConfigurationError(f'{path}: check.sites: must pair patterns with sites: {{ "jobs/*.sh" = "polaris" }}')
    return tuple(sites.items())


def _words(path: Path, table: dict[str, Any], key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise ConfigurationError(f"{path}: check.{key}: must be a list of names in quotes")
    return tuple(value)


def _known(path: Path, kind: str, name: str, known: Collection[str], where: str = "") -> None:
    if name not in known:
        raise ConfigurationError(f"{path}: {where}{UnknownNameError(kind, name, known)}")


@cache
def _glob(pattern: str) -> re.Pattern[str]:
    """``*`` and ``?`` within a folder, ``**`` through folders; a pattern without ``/`` matches in every folder."""
    if "/" not in pattern:
        pattern = f"**/{pattern}"
    signs = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern.removeprefix("./"))
    return re.compile("".join(signs.get(part) or re.escape(part) for part in parts), re.S)
