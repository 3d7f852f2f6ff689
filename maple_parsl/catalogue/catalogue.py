"""Finding a site by name, and laying its files over one another."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from maple_parsl.catalogue.layers import Listing, SiteFile, list_files
from maple_parsl.catalogue.merge import Tree, annotate, complete, leaves, overlay, plain
from maple_parsl.catalogue.reading import Stamp, modified, peek, read, stamp
from maple_parsl.catalogue.record import Origin, SiteRecord
from maple_parsl.catalogue.schema import REQUIRED
from maple_parsl.catalogue.wording import explain
from maple_parsl.data import data_folder
from maple_parsl.errors import ConfigurationError, UnknownNameError
from maple_parsl.folders import current
from maple_parsl.site import Site

_records: dict[tuple[tuple[SiteFile, Stamp], ...], SiteRecord] = {}


@dataclass(frozen=True)
class Catalogue:
    """All sites of all layers. Files are listed at the first question, and read when their site is needed."""

    environ: Mapping[str, str]
    cwd: Path
    shipped: Path | None = None

    @classmethod
    def load(
        cls, environ: Mapping[str, str] | None = None, cwd: Path | None = None, shipped: Path | None = None
    ) -> Catalogue:
        """The catalogue as seen from ``cwd``; ``shipped`` stands in for the catalogue in the package."""
        return cls(os.environ if environ is None else environ, cwd or current(), shipped)

    def names(self) -> tuple[str, ...]:
        """The names of all sites that are not retired, sorted."""
        return tuple(sorted(name for name, entry in self._index.items() if not entry.retired))

    def retired(self) -> tuple[str, ...]:
        """The names of the sites that no longer run jobs, sorted; they can still be read."""
        return tuple(sorted(name for name, entry in self._index.items() if entry.retired))

    def aliases(self) -> dict[str, tuple[str, ...]]:
        """The other names of every site, retired ones included; no site file is read as a whole."""
        return {name: entry.aliases for name, entry in self._index.items()}

    @property
    def notices(self) -> tuple[str, ...]:
        """What the user should know about the places that were looked at."""
        return (*self._listing.notices, *self._strays)

    def get(self, name: str) -> SiteRecord:
        """The site of that name or alias, or of the file at that path.

        Raises:
            UnknownNameError: there is no such site; the message offers the nearest names.
            ConfigurationError: one of its files cannot be read or is wrong; the message names file and key.
        """
        if "/" in name or name.lower().endswith(".toml"):
            return self._from_path(self.cwd / os.path.expanduser(name))
        canonical = self._resolve(name)
        if canonical is None:
            broken = [str(f.path) for e in self._index.values() for f in e.files if peek(f.path).error]
            hint = f"(these site files cannot be read: {', '.join(broken)})" if broken else ""
            known = [*self._index, *(a for entry in self._index.values() for a in entry.aliases)]
            raise UnknownNameError("site", name, known, hint)
        return _record(canonical, self._index[canonical].files, self.notices)

    def files(self, name: str) -> tuple[Path, ...]:
        """The files of a site, lowest layer first, read or not; none for an unknown name."""
        canonical = self._resolve(name)
        return tuple(file.path for file in self._index[canonical].files) if canonical else ()

    def faults(self, name: str) -> tuple[ConfigurationError, ...]:
        """What is wrong with each file of a site, also where a higher layer hides it."""
        canonical = self._resolve(name)
        sound: list[SiteFile] = []
        faults: list[ConfigurationError] = []
        for file in self._index[canonical].files if canonical else ():
            try:
                _record(canonical or name, [*sound, file], ())
                sound.append(file)
            except ConfigurationError as error:
                faults.append(error)
                if not sound:
                    break  # nothing can be laid over a site that cannot be read
        return tuple(faults)

    @cached_property
    def _listing(self) -> Listing:
        return list_files(self.environ, self.cwd, self.shipped or data_folder("providers"))

    @cached_property
    def _index(self) -> dict[str, _Entry]:
        index: dict[str, _Entry] = {}
        for file in self._listing.files:
            head = peek(file.path)
            name = head.text("extends") or head.text("name") or file.path.stem
            if file.layer != "catalogue":
                found = _find(index, name)
                name = found[0] if len(found) == 1 else name
            entry = index.setdefault(name, _Entry([], (), False))
            entry.files.append(file)
            aliases = head.values.get("aliases")
            if isinstance(aliases, list):
                entry.aliases = tuple(alias for alias in aliases if isinstance(alias, str))
            if status := head.text("status"):
                entry.retired = status == "retired"
        return index

    @cached_property
    def _strays(self) -> tuple[str, ...]:
        """Files that change a part of a site which does not exist: a misspelt name, most often."""
        return tuple(
            f"{first.path} changes a part of {name!r}, but there is no such site; correct the name in it"
            for name, entry in self._index.items()
            if (first := entry.files[0]).layer != "catalogue"
            and not (head := peek(first.path)).error
            and ("extends" in head.values or not head.whole)
        )

    def _resolve(self, name: str) -> str | None:
        found = _find(self._index, name)
        if len(found) > 1:
            files = " and ".join(str(self._index[known].files[-1].path) for known in found)
            raise ConfigurationError(
                f"{name!r} is an alias of {' and of '.join(found)} ({files}); write the site's own name,"
                " or remove the alias from one file"
            )
        return found[0] if found else None

    def _from_path(self, path: Path) -> SiteRecord:
        data = read(path)
        file = SiteFile("path", path)
        stated = data.get("extends", data.get("name"))
        below: list[SiteFile] = []
        name = stated if isinstance(stated, str) else path.stem
        if "extends" in data or not all(key in data for key in REQUIRED):
            known = self._resolve(name)
            if known is not None:
                name, below = known, [f for f in self._index[known].files if f.path != path]
        return _record(name, [*below, file], self.notices)


@dataclass
class _Entry:
    files: list[SiteFile]
    aliases: tuple[str, ...]
    retired: bool


def _find(index: Mapping[str, _Entry], name: str) -> list[str]:
    """The site of that name; otherwise all that have it as an alias."""
    wanted = name.lower()
    return [known for known in index if known.lower() == wanted] or [
        known for known, entry in index.items() if wanted in (alias.lower() for alias in entry.aliases)
    ]


def _record(name: str, files: Iterable[SiteFile], notices: tuple[str, ...]) -> SiteRecord:
    key = tuple((file, stamp(file.path)) for file in files)
    record = _records.get(key)
    if record is None:
        record = _records[key] = _merge(name, [file for file, _ in key])
    return SiteRecord(record.site, record.origins, record.files, (*record.notices, *notices))


def _merge(name: str, files: list[SiteFile]) -> SiteRecord:
    tree: Tree = {}
    for file in files:
        tree = overlay(tree, _tree(name, file, first=not tree))
    tree = complete(tree)
    data = plain(tree)
    origins = {".".join(path): leaf.origin for path, leaf in leaves(tree)}
    try:
        # Strict: "4" is no number. From JSON: lists and dates are still what TOML means by them.
        site = Site.model_validate_json(json.dumps(data, default=str), strict=True)
    except ValidationError as error:
        raise explain(name, error, data, origins) from None
    return SiteRecord(site, origins, tuple(file.path for file in files), _account_notice(site, origins))


def _tree(name: str, file: SiteFile, *, first: bool) -> Tree:
    data: dict[str, Any] = dict(read(file.path))
    if "defaults" in data and file.layer == "catalogue":
        raise ConfigurationError(
            f"{file.path}: defaults: the shipped catalogue holds no one's account or limits;"
            f" put them in ~/.config/maple/sites/{name}.toml"
        )
    if file.layer == "catalogue" and not first:
        raise ConfigurationError(f"{file.path}: name: another file of the catalogue defines {name!r} too")
    if "extends" in data:
        _check_extends(name, file, data, first)
        del data["extends"]
    if not first:
        data.pop("name", None)
    elif file.layer not in ("catalogue", "path"):
        data.setdefault("name", name)
    # The catalogue's files carry dates of installation; people's own files, those of their last edit.
    stated = _dates(data) if file.layer == "catalogue" else []
    origin = Origin(file.layer, file.path, str(file.path), min(stated, default=modified(file.path)))
    return annotate(data, origin)


def _dates(table: Mapping[str, Any]) -> list[date]:
    found = [value for key, value in table.items() if key == "checked_on" and type(value) is date]
    for value in table.values():
        if isinstance(value, dict):
            found += _dates(value)
    return found


def _check_extends(name: str, file: SiteFile, data: Mapping[str, Any], first: bool) -> None:
    extends, stated = data["extends"], data.get("name", name)
    if not isinstance(extends, str):
        raise ConfigurationError(f"{file.path}: extends: must be the name of a site, in quotes")
    if first:
        raise ConfigurationError(
            f"{file.path}: extends: there is no site {extends!r} for it to extend; correct the name"
            " (maple sites lists them)"
        )
    if str(stated).lower() not in (extends.lower(), name.lower()):
        raise ConfigurationError(
            f"{file.path}: name: a file that extends {extends!r} keeps its name; remove name,"
            " or remove extends and state a whole site"
        )


def _account_notice(site: Site, origins: Mapping[str, Origin]) -> tuple[str, ...]:
    origin = origins.get("defaults.account")
    if origin is None or origin.layer not in ("group", "project"):
        return ()
    return (f"the account {site.defaults.account} comes from the {origin.layer} file {origin.file}",)
