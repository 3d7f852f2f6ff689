"""Reported failures whose fix is known (confirmed, by a maintainer, documented): named, and corrected.

A record is taken as it is: what was printed goes to the diagnosis, a fragment of a script, completed, to the check.
Reports that hold neither, but describe a silent fault, have a script written from the description
(``described.jsonl``).
"""

from __future__ import annotations

import json
import runpy
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maple_parsl.correction import correct
from maple_parsl.diagnosis import LogSource, diagnose
from maple_parsl.rules import check
from maple_parsl.site import Site
from tests import cases

HERE = Path(__file__).parent
whole = runpy.run_path(str(HERE / "complete.py"))["whole"]
KNOWN_FIX = ("confirmed", "maintainer", "doc")
_ORDER = {"error": 0, "warning": 1, "note": 2}


def _records(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


@dataclass(frozen=True)
class Outcome:
    """How a record went: ``first``, ``choice`` (among several classes) or ``missed``; and its correction."""

    record: dict[str, Any]
    named: str
    corrected: str


def _key(record: dict[str, Any]) -> tuple[str, str]:
    return record["error_class"], record["source_url"] or record.get("signature", "")


def _scripts() -> dict[tuple[str, str], tuple[str, Site | None]]:
    found: dict[tuple[str, str], tuple[str, Site | None]] = {}
    for name in ("fragments.jsonl", "fragments2.jsonl"):
        for record in _records(name):
            if record["bad_fragment"]:
                found[_key(record)] = (whole(record["bad_fragment"], record["scheduler"]), None)
    for record in _records("described.jsonl"):
        site = cases.site(record["site"]) if record["site"] else None
        found[record["error_class"], record["source_url"]] = (record["script"], site)
    return found


def outcomes() -> list[Outcome]:
    scripts = _scripts()
    made = []
    for record in _records("failures.jsonl"):
        if record["fix_status"] not in KNOWN_FIX:
            continue
        wanted = record["error_class"]
        causes = diagnose([LogSource.of_text("log", record["signature"] + "\n")]).causes
        said = causes[0].script_classes if causes else ()
        script, site = scripts.get(_key(record), (None, None))
        findings = sorted(check(script, site), key=lambda f: (_ORDER[f.severity], f.line or 0)) if script else []
        classes = [finding.fault_class for finding in findings]
        first = said[:1] == (wanted,) or classes[:1] == [wanted]
        named = "first" if first else "choice" if wanted in said or wanted in classes else "missed"
        made.append(Outcome(record, named, _corrected(script, site, wanted) if script else "no script"))
    return made


def _corrected(script: str, site: Site | None, wanted: str) -> str:
    """``corrected``: no error is left; ``cannot``: what is left is named, with the reason; else ``failed``."""
    made = correct(script, None, site)
    errors = [finding for finding in made.left if finding.severity == "error"]
    if not errors:
        return "corrected"
    told = "\n".join(made.notes)
    return "cannot" if all(f"cannot correct {f.rule}, because" in told for f in errors) else "failed"


def test_named_and_corrected() -> None:
    every = outcomes()
    named, corrected = Counter(one.named for one in every), Counter(one.corrected for one in every)
    missed = [one.record["signature"] for one in every if one.named == "missed"]
    assert len(every) >= 57
    assert named["first"] + named["choice"] >= 0.95 * len(every), (named, missed)
    assert named["first"] >= 0.9 * len(every), named
    assert corrected["failed"] == 0, corrected
    assert corrected["corrected"] >= 20, corrected
