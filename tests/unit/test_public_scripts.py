"""The list of public scripts is whole, and the tool that reads them counts right. Nothing is taken from the network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from maple_parsl.catalogue import Catalogue
from maple_parsl.rules.base import CLASSES
from tests.tools.public_scripts import RECORDS, Checked, checked, main, obtain, page

FIXED_PORT = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --time=10\nexport MASTER_PORT=29500\nsrun python t.py\n"


def record(**more: Any) -> dict[str, Any]:
    defects = [{"what": "fixed port", "class": "PORT_COLLISION"}, {"what": "a secret", "class": "SECRET"}]
    made = {"repo": "a/b", "path": "job.sh", "commit": "0" * 40, "quality": "mixed", "site": None, "defects": defects}
    return {**made, **more}


def check(tmp_path: Path, text: str, **more: Any) -> Checked:
    file = tmp_path / "a/b" / ("0" * 40) / "job.sh"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    made = record(**more)
    return checked(made, obtain(made, tmp_path, offline=True), Catalogue.load({}, tmp_path))


def test_records_are_whole() -> None:
    records = [json.loads(line) for line in RECORDS.read_text().splitlines()]
    assert len({r["id"] for r in records}) == len(records) >= 45
    for one in records:
        assert len(one["commit"]) == 40
        for defect in one["defects"]:
            assert defect["class"] in CLASSES if defect["class"] else defect["why_none"]


def test_a_defect_is_found_by_its_class(tmp_path: Path) -> None:
    one = check(tmp_path, FIXED_PORT)
    assert [one.found(d) for d in one.classed] == [True, False]
    text = page([one])
    assert "have a class: 2; found, by class: 1 (50 %)" in text
    assert "**not found**: a secret" in text


@pytest.mark.parametrize(("quality", "count"), [("good-template", 1), ("mixed", 0)])
def test_an_error_on_a_sound_script_is_false(tmp_path: Path, quality: str, count: int) -> None:
    one = check(tmp_path, "# licence\n" + FIXED_PORT, quality=quality)
    assert len({f.rule for f in one.false_errors}) == count


def test_a_script_that_cannot_be_had(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--cache", str(tmp_path), "--offline"]) == 2
    assert "not in the cache" in capsys.readouterr().err
