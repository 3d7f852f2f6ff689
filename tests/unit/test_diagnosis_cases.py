"""Measured logs and printed messages: class, place and evidence."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from maple_parsl.diagnosis import Cause, LogSource, diagnose
from maple_parsl.diagnosis.signature import load_signatures

CASES = Path(__file__).parents[1] / "cases"
LOGS = sorted((CASES / "logs").iterdir())
MESSAGES = [
    (name, text)
    for file in ("messages.toml", "messages_unseen.toml")
    for name, texts in tomllib.loads((CASES / file).read_text(encoding="utf-8")).items()
    for text in texts
]
MEASURED = [json.loads(line) for line in (CASES / "measured.jsonl").read_text(encoding="utf-8").splitlines()]
FAILURES = [json.loads(line) for line in (CASES / "failures.jsonl").read_text().splitlines()]


def first(folder: Path, *, everything: bool) -> tuple[dict[str, Any], Cause | None]:
    case = json.loads((folder / "case.json").read_text())
    sources = [
        LogSource.of_text(name, (folder / name).read_bytes()) for name in _there(folder, "stdout.log", "stderr.log")
    ]
    if everything or not sources:
        sources += [
            LogSource.of_text(name, (folder / name).read_bytes(), "submission")
            for name in _there(folder, "sbatch_output.txt")
        ]
    accounting = folder / "sacct.txt"
    result = diagnose(
        sources,
        script=(folder / "script.sh").read_text() if everything else None,
        accounting=accounting.read_text() if everything and accounting.exists() else None,
    )
    return case, result.causes[0] if result.causes else None


def _there(folder: Path, *names: str) -> list[str]:
    return [name for name in names if (folder / name).exists()]


def shows(case: dict[str, Any], cause: Cause) -> bool:
    place = f"{cause.evidence.file}:{cause.evidence.line}"
    return place == case["first_error_at"] or case["first_error_signature"] in cause.evidence.text


@pytest.mark.parametrize("folder", LOGS, ids=lambda folder: folder.name)
def test_everything_given(folder: Path) -> None:
    case, cause = first(folder, everything=True)
    assert cause is not None
    assert (cause.fault_class, cause.where) == (case["class"], case["where"])
    assert shows(case, cause)


def test_logs_alone() -> None:
    right = 0
    for folder in LOGS:
        case, cause = first(folder, everything=False)
        right += cause is not None and cause.fault_class == case["class"] and shows(case, cause)
    assert right >= 0.9 * len(LOGS)


@pytest.mark.parametrize("name, text", MESSAGES)
def test_message(name: str, text: str) -> None:
    causes = diagnose([LogSource.of_text("log", text + "\n")]).causes
    assert causes
    assert causes[0].fault_class == name


@pytest.mark.parametrize("case", MEASURED, ids=lambda case: case["name"])
def test_measured(case: dict[str, Any]) -> None:
    """Logs of small programs made to fail (two processes over gloo), and of jobs on a real Slurm; the log alone."""
    kind: Any = "submission" if case.get("submission") else "log"
    causes = diagnose([LogSource.of_text("job.log", case["log"], kind)]).causes
    assert causes
    assert causes[0].fault_class == case["class"]
    assert causes[0].evidence.text.strip()[:40] in case["log"]


def test_message_with_a_prefix_means_the_same() -> None:
    for name, text in MESSAGES:
        for prefix in ("[rank3]: ", "3: ", "[default3]:", "\x1b[31m", "[1,3]<stderr>:"):
            lines = "\n".join(prefix + line for line in text.split("\n"))
            causes = diagnose([LogSource.of_text("log", lines)]).causes
            assert causes, lines
            assert causes[0].fault_class == name, lines


def test_reported_failures() -> None:
    """Those reported with what was printed; what only describes a silent fault is for the checks of scripts."""
    named = [
        (record["error_class"], causes[0].script_classes)
        for record in FAILURES
        if (causes := diagnose([LogSource.of_text("log", record["signature"] + "\n")]).causes)
    ]
    assert len(named) >= 85
    assert sum(name in classes for name, classes in named) >= 0.95 * len(named)
    assert sum(name == classes[0] for name, classes in named if classes) >= 0.9 * len(named)


def test_every_class_has_a_message() -> None:
    assert set(load_signatures().classes) == {name for name, _ in MESSAGES}


def test_every_signature_names_its_source_and_classes() -> None:
    signatures = load_signatures()
    script_classes = {name for names in signatures.classes.values() for name in names}
    for entry in signatures.failure:
        assert entry.source
        assert entry.do
        for when in entry.when:
            assert when.fault_class is None or when.fault_class in signatures.classes
    assert {record["error_class"] for record in FAILURES} <= script_classes
