"""Public launch scripts, read at their source and checked: ``make public-scripts`` writes docs/public_scripts.md.

The scripts are named in tests/cases/public_scripts.jsonl by repository, path and commit; none is kept here. They are
taken from the cache folder (``--cache``, MAPLE_PUBLIC_SCRIPTS, else the user's cache) and, where one is not there,
from raw.githubusercontent.com. Exit code 0: the bounds hold. 1: they do not. 2: a script could not be had.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from maple_parsl.catalogue import Catalogue
from maple_parsl.checking.report import inspect
from maple_parsl.finding import Finding

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "tests" / "cases" / "public_scripts.jsonl"
PAGE = ROOT / "docs" / "public_scripts.md"
RAW = "https://raw.githubusercontent.com"
LEAST = 0.9
SOUND = ("good-template", "good-production", "edge-case")


@dataclass(frozen=True)
class Checked:
    """One script: its record and what the check says of it."""

    record: dict[str, Any]
    findings: tuple[Finding, ...]

    def found(self, defect: dict[str, Any]) -> bool:
        return any(f.fault_class == defect["class"] for f in self.findings)

    @property
    def classed(self) -> list[dict[str, Any]]:
        return [d for d in self.record["defects"] if d["class"]]

    @property
    def false_errors(self) -> list[Finding]:
        """Errors of a class nobody recorded, on a script that is held to be sound."""
        recorded = {d["class"] for d in self.classed}
        sound = self.record["quality"] in SOUND
        return [f for f in self.findings if sound and f.severity == "error" and f.fault_class not in recorded]


def obtain(record: dict[str, Any], cache: Path, *, offline: bool) -> Path:
    """The folder with the script and the files it sources; raises OSError where a file cannot be had."""
    base = cache / record["repo"] / record["commit"]
    for path in (record["path"], *record.get("with", ())):
        target = base / path
        if target.is_file():
            continue
        if offline:
            raise OSError(f"{target} is not in the cache")
        with urllib.request.urlopen(f"{RAW}/{record['repo']}/{record['commit']}/{path}", timeout=30) as answer:
            data = answer.read()
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return base


def checked(record: dict[str, Any], base: Path, catalogue: Catalogue) -> Checked:
    """Check one script, for its site where the catalogue has it."""
    site = catalogue.get(record["site"]).site if record["site"] else None
    path = base / record["path"]
    return Checked(record, inspect(path.read_bytes(), site, name=path.name, directory=base).findings)


def _rows(findings: tuple[Finding, ...]) -> str:
    """``rule`` with its lines, worst first."""
    order = {"error": 0, "warning": 1, "note": 2}
    ranked = sorted(findings, key=lambda f: (order[f.severity], f.rule))
    told = []
    for (severity, rule), group in groupby(ranked, key=lambda f: (f.severity, f.rule)):
        lines = sorted({f.line for f in group if f.line})
        at = f" (line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))})" if lines else ""
        told.append(
            f"{severity}: [{rule}](rules/{rule}.md){at}" if rule != "unreadable-script" else f"{severity}: {rule}{at}"
        )
    return "<br>".join(told) or "nothing"


def _recorded(one: Checked) -> str:
    told = []
    for defect in one.record["defects"]:
        if defect["class"]:
            told.append(f"{'found' if one.found(defect) else '**not found**'}: {defect['what']} ({defect['class']})")
        else:
            told.append(f"remark: {defect['what']}; {defect['why_none']}")
    return "<br>".join(told).replace("|", "\\|").replace("<account>/<partition>/<job-name>", "account, partition, name")


def page(all_checked: list[Checked]) -> str:
    """The page of documentation."""
    classed = sum(len(one.classed) for one in all_checked)
    found = sum(one.found(d) for one in all_checked for d in one.classed)
    remarks = sum(len(one.record["defects"]) for one in all_checked) - classed
    lines = [
        "# Public scripts",
        "",
        "What `maple check` says of launch scripts that are public, each read at a fixed commit. This is a test of"
        " Maple, not a judgement of the scripts: many are templates to be filled in, tutorials for one site, or"
        " records of their time, and serve their purpose. A finding says what may go wrong when a script is taken as"
        " it stands to another job or cluster; a fixed port, for instance, is harmless on nodes nobody shares."
        " Nothing of the scripts is kept here; `make public-scripts` reads them at their source and writes this page.",
        "",
        f"{len(all_checked)} scripts. Defects that a reader had recorded beforehand and that have a class: {classed};"
        f" found, by class: {found} ({100 * found / classed:.0f} %). {remarks} further remarks were judged to be no"
        " faults of the text (the reason stands with each) and are not counted. Errors of a class that nobody"
        " recorded, on good templates and on edge cases of the reader:"
        f" {sum(len(one.false_errors) for one in all_checked)}.",
        "",
        "How far this goes: a defect counts as found when any finding on the script has its class, so two defects of"
        " one class can be met by one finding. The classes, and which remarks are no faults, were settled while"
        " looking at these results, and rules and reader were improved on these same scripts; this is no score on"
        f" unseen ones. Counting every remark as a defect, {found} of {classed + remarks} are found.",
        "",
        "| script | as read, Maple reports | recorded beforehand |",
        "|---|---|---|",
    ]
    for one in all_checked:
        r = one.record
        link = f"https://github.com/{r['repo']}/blob/{r['commit']}/{r['path']}"
        site = f", checked for {r['site']}" if r["site"] else ""
        name = f"[{r['repo']}: {r['path']}]({link}) at `{r['commit'][:10]}`{site}"
        lines.append(f"| {name} | {_rows(one.findings)} | {_recorded(one) or 'nothing'} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "maple" / "public-scripts"
    parser = argparse.ArgumentParser(prog="public_scripts", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cache", type=Path, default=Path(os.environ.get("MAPLE_PUBLIC_SCRIPTS") or home))
    parser.add_argument("--offline", action="store_true", help="take nothing from the network")
    given = parser.parse_args(arguments)
    catalogue = Catalogue.load({}, ROOT)
    every: list[Checked] = []
    for line in RECORDS.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        try:
            base = obtain(record, given.cache, offline=given.offline)
        except (OSError, urllib.error.URLError) as error:
            print(f"{record['repo']}/{record['path']}: {error}", file=sys.stderr)
            return 2
        every.append(checked(record, base, catalogue))
    PAGE.write_text(page(every), encoding="utf-8")
    classed = [(one, d) for one in every for d in one.classed]
    missed = [(one, d) for one, d in classed if not one.found(d)]
    for one, defect in missed:
        print(f"not found: {one.record['repo']}/{one.record['path']}: {defect['what']} ({defect['class']})")
    false = [(one, f) for one in every for f in one.false_errors]
    for one, finding in false:
        print(f"error nobody recorded: {one.record['repo']}/{one.record['path']}:{finding.line}: {finding.message}")
    print(f"{len(classed) - len(missed)} of {len(classed)} recorded defects found; {PAGE.relative_to(ROOT)} written")
    return 0 if len(missed) <= (1 - LEAST) * len(classed) and not false else 1


if __name__ == "__main__":
    sys.exit(main())
