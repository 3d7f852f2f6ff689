"""Correcting a script: findings or a diagnosis become a new text, checked again. Nothing is ever submitted."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from maple_parsl.finding import Edit, Finding

if TYPE_CHECKING:
    from maple_parsl.diagnosis import Diagnosis
    from maple_parsl.site import Site


class Correction(BaseModel):
    """A corrected script.

    Attributes:
        text: the new script; the old one where nothing could be changed.
        applied: findings whose edits went in. left: findings of the new text.
        notes: every statement of the user that changed, and why the rest could not be corrected.
    """

    model_config = ConfigDict(frozen=True)

    text: str
    applied: tuple[Finding, ...] = ()
    left: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def correct(self) -> bool:
        """Nothing of error severity is left."""
        return not any(finding.severity == "error" for finding in self.left)


def correct(
    script: str, found: Iterable[Finding] | Diagnosis | None = None, site: Site | None = None, *, name: str = "job.sh"
) -> Correction:
    """Correct a script.

    Args:
        found: findings to mend (with the errors that mending them shows), or a diagnosis: its edits, and findings
            of its classes. None: everything a check finds, but for notes.
    """
    from maple_parsl.checking.fixing import mend
    from maple_parsl.checking.report import inspect

    def check(data: bytes) -> list[Finding]:
        return list(inspect(data, site, name=name).findings)

    data = script.encode("utf-8", "surrogateescape")
    told: list[Finding] = []
    classes: set[str] | None = None
    rules: set[str] | None = None
    if found is None:
        pass
    elif _is_diagnosis(found):
        told, classes = _of_diagnosis(found)  # type: ignore[arg-type]
    else:
        told = [finding for finding in found if isinstance(finding, Finding)]
        rules = {finding.rule for finding in told}

    def choose(findings: Iterable[Finding]) -> list[Finding]:
        return [f for f in findings if _wanted(f, rules, classes)]

    applied: list[Finding] = []
    if classes is not None and told:
        data, applied = _first(data, told)
    mended = mend(data, check, choose)
    text = mended.data.decode("utf-8", "surrogateescape")
    applied += mended.applied
    notes = [*_changes(script, text), *_cannot(mended.left, mended.refused)]
    if classes is not None:
        notes += [f"not changed: {f.message}; {f.fix}" for f in told if f not in applied and f.fix]
    return Correction(text=text, applied=tuple(applied), left=mended.left, notes=tuple(dict.fromkeys(notes)))


def _is_diagnosis(found: object) -> bool:
    return hasattr(found, "causes")


def _wanted(finding: Finding, rules: set[str] | None, classes: set[str] | None) -> bool:
    if finding.severity == "error" or (classes is not None and finding.fault_class in classes):
        return True
    if rules is not None:
        return finding.rule in rules
    return classes is None and finding.severity == "warning"


def _of_diagnosis(diagnosis: Diagnosis) -> tuple[list[Finding], set[str]]:
    """The first cause and the others as findings of the script, and the classes of checks they belong to."""
    told: list[Finding] = []
    classes: set[str] = set()
    for cause in diagnosis.causes:
        classes |= {cause.fault_class, *cause.script_classes}
        for edit in cause.edits:
            edits: tuple[Edit, ...] = ()
            if edit.line is not None and edit.old is not None and edit.new is not None:
                edits = (Edit(first=edit.line, last=edit.line, text=edit.new),)
            told.append(
                Finding.model_validate(
                    {
                        "rule": f"diagnosis-{cause.signature}",
                        "class": cause.fault_class,
                        "severity": "error",
                        "message": cause.explanation,
                        "line": edit.line,
                        "evidence": f"{cause.evidence.file}:{cause.evidence.line}: {cause.evidence.text}",
                        "fix": edit.words,
                        "edits": edits,
                    }
                )
            )
            if edits:
                break  # edits of one cause are alternatives
    return told, classes


def _first(data: bytes, told: list[Finding]) -> tuple[bytes, list[Finding]]:
    from maple_parsl.checking.edits import apply, editable

    if not editable(data):
        return data, []
    made = apply(data, told)
    return made.data, list(made.applied)


def _changes(old: str, new: str) -> list[str]:
    """One note for each line of the user's that became another or went away."""
    notes: list[str] = []
    if "\r\n" in old and "\r\n" not in new:
        notes.append("line ends: those of Windows became those of Unix")
        old = old.replace("\r\n", "\n")
    before, after = old.split("\n"), new.split("\n")
    for kind, i, j, k, m in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        gone, come = before[i:j], after[k:m]
        if kind == "replace" and len(gone) == len(come):
            pairs = zip(gone, come, strict=True)
            notes += [f"line {i + n}: {a.strip()!r} became {b.strip()!r}" for n, (a, b) in enumerate(pairs, 1)]
        elif kind in ("replace", "delete"):
            instead = f"; instead: {' / '.join(row.strip() for row in come)!r}" if come else ""
            notes += [f"line {i + n}: removed {row.strip()!r}{instead}" for n, row in enumerate(gone, 1)]
        elif kind == "insert":
            notes.append(f"before line {i + 1}: added {' / '.join(row.strip() for row in come)!r}")
    return notes


def _cannot(left: Iterable[Finding], refused: Iterable[Finding]) -> list[str]:
    tried = {(f.rule, f.message) for f in refused}
    notes = []
    for finding in left:
        if finding.severity != "error":
            continue
        where = f"line {finding.line}: " if finding.line else ""
        why = "it needs a decision that only you can make"
        if (finding.rule, finding.message) in tried:
            why = "the change would bring another error"
        elif finding.edits:
            why = "its change does not fit together with the others"
        todo = f"; {finding.fix}" if finding.fix else ""
        notes.append(f"{where}cannot correct {finding.rule}, because {why}: {finding.message}{todo}")
    return notes
