"""Edits, rounds of mending, and correction; with rules made up here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from maple_parsl import rules as registry
from maple_parsl.checking.edits import apply, safe
from maple_parsl.checking.fixing import mend
from maple_parsl.cli import main
from maple_parsl.correction import correct
from maple_parsl.diagnosis.model import Cause, Diagnosis
from maple_parsl.finding import Edit, Finding
from maple_parsl.rules import Found, Rule, Subject
from maple_parsl.script.model import Place


def finding(*edits: Edit, rule: str = "r", message: str = "m") -> Finding:
    told = {"rule": rule, "class": "SECRET", "severity": "error", "message": message, "edits": edits}
    return Finding.model_validate(told)


def test_edits_go_in_bottom_up_and_whole() -> None:
    made = apply(
        b"a\r\nb\nc\n",
        [
            finding(Edit(first=1, last=1, text="x\ny")),
            finding(Edit(first=3, last=3, text="")),
            finding(Edit(first=2, last=2, text="z", insert=True)),
            finding(Edit(first=1, last=2, text="no"), message="overlaps"),
            finding(Edit(first=9, last=9, text="no"), message="outside"),
        ],
    )
    assert made.data == b"x\ny\nz\nb\n"
    assert [f.message for f in made.later] == ["overlaps", "outside"]
    assert apply(b"a\r\n\xff\nc", [finding(Edit(first=3, last=3, text="d"))]).data == b"a\r\n\xff\nd"


def test_only_wholly_safe_findings_are_safe() -> None:
    one, two = Edit(first=1, last=1, text="x", safe=True), Edit(first=2, last=2, text="y")
    assert safe([finding(one), finding(one, two), finding()]) == [finding(one)]


def test_mending_is_bounded_and_takes_back_what_breaks() -> None:
    def growing(data: bytes) -> list[Finding]:
        return [finding(Edit(first=1, last=1, text="x" * (len(data) + 1), safe=True))]

    assert len(mend(b"x", growing, safe).data) <= 11

    def breaking(data: bytes) -> list[Finding]:
        good, bad = Edit(first=1, last=1, text="A", safe=True), Edit(first=2, last=2, text="worse", safe=True)
        found = [finding(good, rule="good")] if data.startswith(b"a") else []
        found += [finding(bad, rule="bad")] if b"\nb" in data else [finding(rule="new")]
        return found

    made = mend(b"a\nb\n", breaking, safe)
    assert made.data == b"A\nb\n"
    assert [f.rule for f in made.refused] == ["bad"]


def _rules() -> dict[str, Rule]:
    def shouting(subject: Subject) -> Iterator[Found]:
        for number, row in enumerate(subject.lines, 1):
            if "LOUD" in row:
                edit = Edit(first=number, last=number, text=row.replace("LOUD", "quiet"), safe=True)
                yield Found("it is loud", Place(number, row.index("LOUD") + 1), edits=(edit,))

    def nodes(subject: Subject) -> Iterator[Found]:
        directive = subject.script.directive("--nodes")
        if directive and directive.number and directive.number > 4:
            at = directive.place.line
            edit = Edit(first=at, last=at, text="#SBATCH --nodes=4")
            yield Found("more than 4 nodes", directive.place, edits=(edit,))

    def never(subject: Subject) -> Iterator[Found]:
        for number, row in enumerate(subject.lines, 1):
            if "PLEASE" in row:
                yield Found("a placeholder was left", Place(number, 1), fix="say what it is")

    return {
        name: Rule(name, kind, "error", name, "Because.", "here", "do", "", "", check)
        for name, kind, check in (
            ("loud", "INVALID_VALUE", shouting),
            ("many-nodes", "QUEUE_LIMIT", nodes),
            ("placeholder", "MISSING_REQUIRED_FIELD", never),
        )
    }


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    made = _rules()
    monkeypatch.setattr(registry, "rules", lambda: made)
    for module in ("maple_parsl.checking.report", "maple_parsl.checking.about"):
        monkeypatch.setattr(f"{module}.rules", lambda: made)


SCRIPT = "#!/bin/bash\r\n#SBATCH --nodes=8\necho LOUD\nsrun ./a\n"


@pytest.mark.usefixtures("made_up")
def test_fix_applies_the_safe_ones_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "a.sh"
    file.write_bytes(SCRIPT.encode())
    assert main(["check", "a.sh", "--fix", "--diff"]) == 1
    assert "-echo LOUD\n+echo quiet\n" in capsys.readouterr().out
    assert file.read_bytes() == SCRIPT.encode()
    assert main(["check", "a.sh", "--fix"]) == 1
    assert file.read_bytes() == SCRIPT.replace("LOUD", "quiet").encode()
    assert "more than 4 nodes" in capsys.readouterr().out
    main(["check", "a.sh", "--format", "sarif"])
    (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    (change,) = result["fixes"][0]["artifactChanges"][0]["replacements"]
    assert change["insertedContent"]["text"] == "#SBATCH --nodes=4"


@pytest.mark.usefixtures("made_up")
def test_correction_says_what_it_changed_and_what_it_cannot() -> None:
    made = correct(SCRIPT + "#SBATCH --x=PLEASE\n")
    assert made.text == SCRIPT.replace("=8", "=4").replace("LOUD", "quiet") + "#SBATCH --x=PLEASE\n"
    assert not made.correct
    assert "line 2: '#SBATCH --nodes=8' became '#SBATCH --nodes=4'" in made.notes
    assert any("cannot correct placeholder, because" in note for note in made.notes)
    assert correct(SCRIPT).correct
    assert correct(made.text).text == made.text


@pytest.mark.usefixtures("made_up")
def test_correction_of_a_diagnosis() -> None:
    told = {
        "class": "QUEUE_LIMIT", "where": "script", "evidence": {"file": "log", "line": 1, "text": "refused"},
        "explanation": "too many", "confidence": 1.0, "signature": "s",
        "edits": [{"words": "ask for less", "line": 2, "old": "#SBATCH --nodes=8", "new": "#SBATCH --nodes=2"}],
    }  # fmt: skip
    made = correct(SCRIPT, Diagnosis(causes=(Cause.model_validate(told),)))
    assert "--nodes=2" in made.text
    assert made.applied[0].rule == "diagnosis-s"
    told["edits"] = [{"words": "ask the site"}]
    made = correct("#!/bin/bash\nsrun x\n", Diagnosis(causes=(Cause.model_validate(told),)))
    assert made.text == "#!/bin/bash\nsrun x\n"
    assert made.notes == ("not changed: too many; ask the site",)


@pytest.mark.usefixtures("made_up")
def test_correct_prints_a_diff_and_leaves_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "a.sh"
    file.write_bytes(SCRIPT.encode())
    assert main(["correct", "a.sh", "--out", "b.sh"]) == 0
    assert "+#SBATCH --nodes=4" in capsys.readouterr().out
    assert file.read_bytes() == SCRIPT.encode()
    assert b"--nodes=4" in (tmp_path / "b.sh").read_bytes()
    assert main(["correct", "none.sh"]) == 2
    assert main(["correct", "a.sh", "--log", "none.log"]) == 2
    assert main(["correct", "a.sh", "--json"]) == 0
    capsys.readouterr()
    file.write_text("#!/bin/bash\n# PLEASE\nsrun x\n")
    assert main(["correct", "a.sh", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["correct"] is False
