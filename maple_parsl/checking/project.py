"""Checking files as a project wants it: configuration, site of each file, baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from maple_parsl.checking import baseline
from maple_parsl.checking.about import ids
from maple_parsl.checking.config import Config, find, load
from maple_parsl.checking.report import FileReport, inspect_script
from maple_parsl.errors import ConfigurationError, MapleError, UnknownNameError
from maple_parsl.script.reader import read

if TYPE_CHECKING:
    from maple_parsl.catalogue import Catalogue
    from maple_parsl.script.model import Script
    from maple_parsl.site import Site


@dataclass
class Project:
    """How to check.

    Attributes:
        folder: where configuration is looked for, for text without a file.
        site: for all files, instead of the configuration and of guessing. only: rule ids.
        known: file of known findings, instead of the configured one.
    """

    folder: Path
    site: str | None = None
    only: tuple[str, ...] = ()
    known: Path | None = None
    _configs: dict[Path, Config] = field(default_factory=dict)
    _baselines: dict[Path, Counter[tuple[str, str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for rule in self.only:
            if rule not in ids():
                raise UnknownNameError("rule", rule, ids())

    def config(self, path: Path | None) -> Config:
        """The configuration that holds for a file."""
        folder = (path.absolute().parent if path else self.folder).absolute()
        if folder not in self._configs:
            found = find(folder)
            self._configs[folder] = load(found, ids()) if found else Config(folder)
        return self._configs[folder]

    @cached_property
    def catalogue(self) -> Catalogue:
        from maple_parsl.catalogue import Catalogue

        return Catalogue.load(cwd=self.folder)

    def check(self, data: bytes, name: str, path: Path | None) -> FileReport:
        """Check a text; ``path`` is None for standard input."""
        config = self.config(path)
        script = read(data, name=name, directory=path.absolute().parent if path else None)
        stated = self.site or (config.site_of(path) if path else None)
        why: tuple[str, ...] = ()
        candidates: tuple[str, ...] = ()
        site: Site | None
        if stated:
            site = self.catalogue.get(stated).site
        else:
            site, why, candidates = self._guessed(script)
        disabled = () if self.only else config.disable
        made = inspect_script(script, site, name, disabled, self.only)
        made = replace(made, why=why, candidates=candidates)
        return self._without_known(made, config)

    def baseline_file(self, path: Path | None) -> Path | None:
        return self.known or self.config(path).baseline

    def _without_known(self, made: FileReport, config: Config) -> FileReport:
        file = self.known or config.baseline
        if file is None:
            return made
        if file not in self._baselines:
            self._baselines[file] = baseline.load(file)
        return baseline.subtract(made, self._baselines[file], file.absolute().parent)

    def forget_baselines(self, files: Iterable[Path]) -> None:
        """Take these as empty: they are about to be written anew."""
        self._baselines.update({file: Counter() for file in files})

    def _guessed(self, script: Script) -> tuple[Site | None, tuple[str, ...], tuple[str, ...]]:
        from maple_parsl.checking.site_guess import guess

        if not script.directives:
            return None, (), ()
        found = guess(script, self._sites)
        return found.site, tuple(evidence.text for evidence in found.evidence), found.candidates

    @cached_property
    def _sites(self) -> tuple[Site, ...]:
        sites = []
        for name in self.catalogue.names():
            try:
                sites.append(self.catalogue.get(name).site)
            except (MapleError, ConfigurationError):
                continue  # maple sites check says what is wrong with it
        return tuple(sites)
