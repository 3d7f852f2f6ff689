"""Where the folders of data are: in the installed package, or beside it in a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from maple_parsl.errors import ConfigurationError

Folder = Literal["providers", "agents", "endpoints"]


def data_folder(name: Folder) -> Path:
    """The folder ``name``; raises :class:`ConfigurationError` when this installation lacks it."""
    package = Path(__file__).resolve().parent
    places = (package / "data" / name, package.parent / name)
    for place in places:
        if place.is_dir():
            return place
    raise ConfigurationError(
        f"this installation of maple-parsl lacks its folder {name!r} (looked for {places[0]} and"
        f" {places[1]}); install it again, or run from a complete checkout"
    )
