"""One file under check, and all of them together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from maple_parsl.checking.unreadable import unreadable
from maple_parsl.finding import Finding
from maple_parsl.rules import check, rules
from maple_parsl.script.reader import read

if TYPE_CHECKING:
    from maple_parsl.script.model import Script
    from maple_parsl.site import Site

_ORDER = {"error": 0, "warning": 1, "note": 2}


@dataclass(frozen=True)
class FileReport:
    """What there is to say about one file.

    Attributes:
        file: as named. script: as read. site: its site's name, or None. why: evidence the site was guessed by.
        candidates: sites that fit but not well enough. known: findings that the baseline holds.
        not_applied: rules that need a site, and had none.
    """

    file: str
    script: Script
    findings: tuple[Finding, ...]
    site: str | None = None
    why: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    known: tuple[Finding, ...] = ()
    not_applied: tuple[str, ...] = ()

    @property
    def rows(self) -> tuple[str, ...]:
        return self.script.rows

    def row(self, finding: Finding) -> str:
        """Source line of a finding; empty where it has none."""
        at = finding.line or 0
        return self.rows[at - 1] if 0 < at <= len(self.rows) else ""

    def with_findings(self, findings: Iterable[Finding], known: Iterable[Finding] = ()) -> FileReport:
        return replace(self, findings=tuple(findings), known=(*self.known, *known))


@dataclass(frozen=True)
class Report:
    """All files."""

    files: tuple[FileReport, ...]
    notices: tuple[str, ...] = field(default=())

    @cached_property
    def counts(self) -> dict[str, int]:
        """Findings by severity."""
        found = dict.fromkeys(_ORDER, 0)
        for file in self.files:
            for finding in file.findings:
                found[finding.severity] += 1
        return found

    @property
    def site(self) -> str | None:
        """The site, where all files have the same."""
        names = {file.site for file in self.files}
        return names.pop() if len(names) == 1 else None

    @property
    def known(self) -> int:
        return sum(len(file.known) for file in self.files)

    def exit_code(self, strict: bool = False) -> int:
        """1 when something is of error severity, or, with ``strict``, at least a warning."""
        return 1 if self.counts["error"] or (strict and self.counts["warning"]) else 0


def inspect(
    data: bytes | str,
    site: Site | None = None,
    *,
    name: str = "job.sh",
    directory: Path | None = None,
    disabled: Iterable[str] = (),
    only: Iterable[str] = (),
) -> FileReport:
    """Check one script, whatever its bytes.

    Args:
        only: apply these rules alone (all when empty). The rest as in :func:`maple_parsl.rules.check`.
    """
    return inspect_script(read(data, name=name, directory=directory), site, name, disabled, only)


def inspect_script(
    script: Script, site: Site | None, name: str, disabled: Iterable[str] = (), only: Iterable[str] = ()
) -> FileReport:
    """As :func:`inspect`, for what was read already."""
    chosen = set(only)
    off = set(disabled) | ({rule for rule in rules() if rule not in chosen} if chosen else set())
    findings = check(script, site, disabled=off)
    findings += [f for f in unreadable(script, findings) if f.rule not in off and (not chosen or f.rule in chosen)]
    findings.sort(key=lambda f: (f.line or 0, _ORDER[f.severity], f.column or 0))
    skipped = tuple(r.id for r in rules().values() if r.needs_site and site is None and r.id not in off)
    return FileReport(name, script, tuple(findings), site.name if site else None, not_applied=skipped)
