"""What the catalogue hands out: a site, and where each of its values comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal

from maple_parsl.site import Site

Layer = Literal["catalogue", "group", "user", "project", "path"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from.

    Attributes:
        layer: the layer that won; ``path`` is a file named in place of a site.
        file: the file that states the value.
        source: the document, page or command it was taken from.
        checked_on: the day it was last compared with that source.
    """

    layer: Layer
    file: Path
    source: str
    checked_on: date


@dataclass(frozen=True, slots=True)
class SiteRecord:
    """A site as all layers together state it.

    Attributes:
        site: the facts.
        origins: the origin of every stated value, by dotted path (``queues.entry.debug.max_nodes``).
        files: the files that were merged, lowest layer first.
        notices: what the user should be told, such as an account that a group file sets.
    """

    site: Site
    origins: Mapping[str, Origin]
    files: tuple[Path, ...]
    notices: tuple[str, ...] = ()

    def origin(self, key: str) -> Origin:
        """The origin of a value, or of the nearest group around it when the value itself is not stated."""
        at = key
        while at:
            for candidate in (at, f"{at}.source"):
                if candidate in self.origins:
                    return self.origins[candidate]
            at = at.rpartition(".")[0]
        return self.origins["name"]

    @property
    def oldest(self) -> date:
        """The date of the facts that were checked longest ago."""
        return min(origin.checked_on for origin in self.origins.values())
