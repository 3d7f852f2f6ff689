"""Which site files there are, layer by layer."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from maple_parsl.catalogue.record import Layer
from maple_parsl.folders import expanded


@dataclass(frozen=True, slots=True)
class SiteFile:
    """A file of a layer."""

    layer: Layer
    path: Path


@dataclass(frozen=True, slots=True)
class Listing:
    """All site files, lowest layer first, and what the user should know about the places looked at."""

    files: tuple[SiteFile, ...]
    notices: tuple[str, ...]


def list_files(environ: Mapping[str, str], cwd: Path, shipped: Path) -> Listing:
    """List the site files of every layer; nothing is read."""
    files: list[SiteFile] = []
    notices: list[str] = []
    for layer, place, must_exist in _places(environ, cwd, shipped, notices):
        if place.suffix == ".toml" and not (must_exist and place.is_dir()):
            files.append(SiteFile(layer, place))
            continue
        try:
            entries = sorted(entry.name for entry in os.scandir(place))
        except (FileNotFoundError, NotADirectoryError) as error:
            if must_exist:
                notices.append(f"{place} in MAPLE_SITE_PATH is not read: {_reason(error)}")
            continue
        except OSError as error:
            notices.append(f"the site files in {place} are not read: {_reason(error)}")
            continue
        files += [SiteFile(layer, place / n) for n in entries if n.endswith(".toml") and not n.startswith(".")]
    return Listing(tuple(files), tuple(notices))


def user_folder(environ: Mapping[str, str]) -> Path | None:
    """The user's folder of site files; None without a home."""
    if home := environ.get("MAPLE_CONFIG_HOME"):
        return expanded(home, "MAPLE_CONFIG_HOME") / "sites"
    base = environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(base):  # as the XDG specification asks
        home = environ.get("HOME", "")
        if not home:
            return None
        base = os.path.join(home, ".config")
    return Path(base) / "maple" / "sites"


def _places(
    environ: Mapping[str, str], cwd: Path, shipped: Path, notices: list[str]
) -> Iterator[tuple[Layer, Path, bool]]:
    yield "catalogue", shipped, False
    yield "catalogue", shipped / "retired", False
    for entry in environ.get("MAPLE_SITE_PATH", "").split(":"):
        if entry.strip():
            yield "group", cwd / os.path.expanduser(entry.strip()), True
    if folder := user_folder(environ):
        yield "user", folder, False
    for parent in (cwd, *cwd.parents):
        project = parent / ".maple"
        try:
            owner = project.stat().st_uid if project.is_dir() else None
        except OSError:
            continue
        if owner is None:
            continue
        if owner in (0, os.geteuid()):
            yield "project", project / "sites", False
        elif (project / "sites").is_dir():
            # Site files hold shell lines: in /tmp or a shared folder, anyone could have put one there.
            notices.append(
                f"the site files in {project / 'sites'} are not read, because the folder belongs to another"
                " user; to use them, name the folder in MAPLE_SITE_PATH"
            )
        return


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
