"""A report for machines: one JSON object, SARIF 2.1.0, or workflow commands of GitHub."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from maple_parsl.checking.about import about, page
from maple_parsl.checking.baseline import fingerprint
from maple_parsl.checking.report import FileReport, Report
from maple_parsl.finding import Edit, Finding
from maple_parsl.version import VERSION

_LEVELS = {"error": "error", "warning": "warning", "note": "note"}
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def as_json(report: Report) -> dict[str, Any]:
    """``files``, ``findings``, ``site`` and ``summary``; the keys are stable."""
    return {
        "version": VERSION,
        "site": report.site,
        "files": [
            {
                "file": file.file,
                "site": file.site,
                "site_evidence": list(file.why),
                "site_candidates": list(file.candidates),
                "rules_not_applied": list(file.not_applied),
                "known": len(file.known),
            }
            for file in report.files
        ],
        "findings": [_finding(file, finding) for file in report.files for finding in file.findings],
        "summary": {
            "files": len(report.files),
            "errors": report.counts["error"],
            "warnings": report.counts["warning"],
            "notes": report.counts["note"],
            "known": report.known,
        },
        "notices": list(report.notices),
    }


def _finding(file: FileReport, finding: Finding) -> dict[str, Any]:
    found = finding.model_dump(mode="json", by_alias=True)
    keys = ("rule", "class", "severity")
    rest = ("line", "column", "message", "evidence", "fix", "edits")
    return {**{k: found[k] for k in keys}, "file": file.file, **{k: found[k] for k in rest}}


def as_github(report: Report) -> str:
    """One ``::error`` , ``::warning`` or ``::notice`` line per finding."""
    lines = []
    for file in report.files:
        for finding in file.findings:
            level = "notice" if finding.severity == "note" else finding.severity
            where = [f"file={_property(file.file)}"]
            if finding.line:
                where.append(f"line={finding.line}")
                if finding.column:
                    where.append(f"col={finding.column}")
            where.append(f"title={_property(finding.rule)}")
            text = finding.message + (f"\n{finding.fix}" if finding.fix else "")
            lines.append(f"::{level} {','.join(where)}::{_data(text)}\n")
    return "".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def as_sarif(report: Report) -> str:
    """One run, with every rule that was met and its page of documentation."""
    names = list(dict.fromkeys(finding.rule for file in report.files for finding in file.findings))
    index = {name: number for number, name in enumerate(names)}
    run = {
        "tool": {
            "driver": {
                "name": "maple check",
                "version": VERSION,
                "semanticVersion": VERSION,
                "informationUri": page(""),
                "rules": [_rule(name) for name in names],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": True}],
        "results": [_result(file, finding, index) for file in report.files for finding in file.findings],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=True) + "\n"


def _rule(name: str) -> dict[str, Any]:
    told = about(name)
    return {
        "id": name,
        "shortDescription": {"text": told.title},
        "fullDescription": {"text": told.why},
        "help": {"text": f"{told.why}\n\n{told.fix}"},
        "helpUri": page(name),
        "defaultConfiguration": {"level": _LEVELS[told.severity]},
        "properties": {"tags": [told.fault_class]},
    }


def _result(file: FileReport, finding: Finding, index: dict[str, int]) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": {"uri": _uri(file.file)}}
    if finding.line:
        location["region"] = {"startLine": finding.line}
        if finding.column:
            location["region"]["startColumn"] = finding.column
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index[finding.rule],
        "level": _LEVELS[finding.severity],
        "message": {"text": finding.message + (f" {finding.fix}" if finding.fix else "")},
        "locations": [{"physicalLocation": location}],
        "partialFingerprints": {"mapleFingerprint/v1": fingerprint(finding, file.row(finding))},
        "properties": {"class": finding.fault_class, "evidence": finding.evidence or ""},
    }
    if finding.edits:
        changes = list(_replacements(file, finding.edits))
        result["fixes"] = [
            {
                "description": {"text": finding.fix or "Apply the change."},
                "artifactChanges": [{"artifactLocation": {"uri": _uri(file.file)}, "replacements": changes}],
            }
        ]
    return result


def _replacements(file: FileReport, edits: tuple[Edit, ...]) -> Iterator[dict[str, Any]]:
    for edit in edits:
        text = edit.text.removesuffix("\n")
        if edit.insert:
            region = {"startLine": edit.first, "startColumn": 1, "endLine": edit.first, "endColumn": 1}
            yield {"deletedRegion": region, "insertedContent": {"text": text + "\n"}}
            continue
        if text:
            row = file.rows[edit.last - 1] if 0 < edit.last <= len(file.rows) else ""
            end = {"endLine": edit.last, "endColumn": len(row) + 1}
        else:
            end = {"endLine": edit.last + 1, "endColumn": 1}
        yield {"deletedRegion": {"startLine": edit.first, "startColumn": 1, **end}, "insertedContent": {"text": text}}


def _uri(name: str) -> str:
    path = quote(name.replace("\\", "/"), safe="/-._~", errors="replace")
    return f"file://{path}" if path.startswith("/") else path
