"""How well requests are read: stated fields right, values invented, error classes named."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maple_parsl.catalogue import Catalogue
from maple_parsl.extraction import FIELDS, Reading, extract

HERE = Path(__file__).parent


@dataclass
class Score:
    stated: int = 0
    right: int = 0
    invented: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    errors: int = 0
    named: int = 0
    errors_missed: list[str] = field(default_factory=list)
    errors_extra: list[str] = field(default_factory=list)
    missing_wrong: list[str] = field(default_factory=list)

    @property
    def accuracy(self) -> float:
        return self.right / self.stated if self.stated else 1.0

    @property
    def classes(self) -> float:
        return self.named / self.errors if self.errors else 1.0


def requests(name: str) -> list[dict[str, Any]]:
    return [
        json.loads(line) for line in (HERE / "data" / name).read_text(encoding="utf-8").splitlines() if line.strip()
    ]


def score(cases: Iterable[dict[str, Any]], catalogue: Catalogue) -> Score:
    made = Score()
    for case in cases:
        add(made, case, extract(case["request"], catalogue))
    return made


def add(made: Score, case: dict[str, Any], reading: Reading) -> None:
    got = reading.to_dict()
    classes = [issue["class"] for issue in got["errors"]]
    wanted = case.get("expected_error")
    if wanted:
        made.errors += 1
        made.named += wanted in classes
        if wanted not in classes:
            made.errors_missed.append(f"{case['id']}: {wanted}, got {classes}")
    elif classes:
        made.errors_extra.append(f"{case['id']}: {got['errors']}")
    if "expected" not in case:
        return
    for name in FIELDS:
        expected, value = case["expected"].get(name), got[name]
        if expected is None:
            if value is not None:
                made.invented.append(f"{case['id']} {name}: {value!r}")
            continue
        made.stated += 1
        same = value == expected or (name == "model" and str(value).lower() == str(expected).lower())
        made.right += same
        if not same:
            made.wrong.append(f"{case['id']} {name}: {expected!r}, got {value!r}")
    if "missing" in case and list(got["missing"]) != case["missing"]:
        made.missing_wrong.append(f"{case['id']}: {case['missing']}, got {got['missing']}")
