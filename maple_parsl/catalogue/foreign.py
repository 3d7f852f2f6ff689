"""What a site file of somebody else's would have run, or charged, in a user's name."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from maple_parsl.catalogue.record import Layer, SiteRecord

_LINES = ("base", "framework", "own", "conda", "container_setup", "container_flags", "network_prepend")
_VARIABLES = ("exports", "network", "proxy")
_KNOWN_LAUNCHERS = frozenset(("srun", "mpiexec", "mpirun", "ibrun"))
_SHARED: tuple[Layer, ...] = ("group", "project", "path")


@dataclass(frozen=True, slots=True)
class Foreign:
    """The part of one file that acts in the user's name.

    Attributes:
        file: a group's or project's file, or one named by its path. layer: which.
        lines: ``key: value`` of every executable line, variable and account it states.
    """

    file: Path
    layer: Layer
    lines: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Changes with the file's place and with any of the lines."""
        return hashlib.sha256("\0".join((str(self.file.absolute()), *self.lines)).encode()).hexdigest()


def foreign(record: SiteRecord) -> tuple[Foreign, ...]:
    """What files beyond the user's own and the shipped ones bring to a site, file by file."""
    found: dict[tuple[Path, Layer], list[str]] = {}
    for key, value in _acting(record):
        origin = record.origin(key)
        if origin.layer in _SHARED:
            found.setdefault((origin.file, origin.layer), []).append(f"{key}: {value}")
    return tuple(Foreign(file, layer, tuple(lines)) for (file, layer), lines in found.items())


def _acting(record: SiteRecord) -> list[tuple[str, str]]:
    site = record.site
    rows: list[tuple[str, str]] = []
    for name, environment in site.environments.items():
        for part in _LINES:
            rows += [(f"environments.{name}.{part}", line) for line in getattr(environment, part)]
        for part in _VARIABLES:
            values = getattr(environment, part)
            rows += [(f"environments.{name}.{part}.{variable}", value) for variable, value in values.items()]
    for name, kind in site.kinds.items():
        for part in ("exports", "composite_exports"):
            rows += [(f"kinds.{name}.{part}.{variable}", value) for variable, value in getattr(kind, part).items()]
    for name, launcher in site.launchers.items():
        for part in ("command", "per_node_command"):
            command = getattr(launcher, part)
            if command and command not in _KNOWN_LAUNCHERS and launcher.dialect != "local":
                rows.append((f"launchers.{name}.{part}", command))
        for part in ("flags", "per_device_flags", "per_node_flags"):
            rows += [(f"launchers.{name}.{part}", flag) for flag in getattr(launcher, part)]
    rows += [("directives.always", option) for option in site.directives.always]
    if site.defaults.account:
        rows.append(("defaults.account", site.defaults.account))
    return rows
