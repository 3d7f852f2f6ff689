"""The HTML page of a run: what is on it, and what must not be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maple_parsl.cli import main
from maple_parsl.report import report
from maple_parsl.report.curves import MOST, thinned
from maple_parsl.report.text import Shown
from maple_parsl.report.timeline import timeline
from maple_parsl.rules.secrets import hide
from maple_parsl.runs.metrics import points
from maple_parsl.runs.run import Run
from tests.made_run import SECRET, failed_run

from .conftest import FakeScheduler


@pytest.fixture
def run(fake: FakeScheduler, tmp_path: Path) -> Run:
    return failed_run(tmp_path)


def test_the_page_tells_what_happened(run: Run) -> None:
    page = report(run)
    assert "rank 3 on gpua001 failed first" in page
    assert "out of memory" in page.lower()
    assert page.count("<polyline") == 2
    assert "rank 7" in page  # the rank map of two nodes
    assert "#SBATCH --account=abcd-delta-gpu" in page
    assert '<small class="stated">' in page
    assert re.search(r'class="site"><b>site</b> .+ checked 20\d\d-\d\d-\d\d', page)


def test_every_line_of_the_script_is_on_it_once(run: Run) -> None:
    page = report(run)
    count = run.plan.script.count("\n")
    assert re.findall(r"<i>(\d+)</i>", page) == [str(number) for number in range(1, count + 1)]


def test_nothing_is_fetched_executed_or_given_away(run: Run) -> None:
    page = report(run)
    assert SECRET not in page
    assert "hf_" not in page
    assert "\x1b" not in page
    assert page.count("<script>") == 1
    assert not re.search(r"<[^>]+(?:src|href)\s*=(?![\"']?data:)", page)
    assert "default-src 'none'" in page


def test_the_timeline_is_in_order_and_knows_each_attempt(run: Run) -> None:
    said = [event.what for event in timeline(run)]
    assert said[:3] == [
        "submitted as job 4242",
        "attempt 1 started, job 4242 on gpua[001-002]",
        "attempt 1 ended by signal TERM (terminated) after 4 min 0 s",
    ]
    assert [event.at for event in timeline(run)] == sorted(event.at for event in timeline(run))
    assert any(event.bad and "rank 3" in event.what for event in timeline(run))


def test_a_run_whose_folder_was_purged_still_has_a_page(run: Run) -> None:
    import shutil

    shutil.rmtree(run.run_dir)
    page = report(run)
    assert "no figures" in page
    assert "purged" in page


def test_the_command_writes_the_file(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.html"
    assert main(["report", run.id, "--out", str(out)]) == 0
    assert out.read_text().startswith("<!doctype html>")
    assert str(out) in capsys.readouterr().out
    assert main(["report", run.id, "--out", str(tmp_path / "absent" / "page.html")]) == 7


def test_points_take_the_later_of_two_attempts(tmp_path: Path) -> None:
    rows = ['{"step":1,"loss":3}', '{"step":2,"loss":2}', "broken", '{"step":2,"loss":1}', '{"step":3,"loss":NaN}']
    (tmp_path / "metrics.jsonl").write_text("\n".join(rows))
    assert [(point.step, point.loss) for point in points(tmp_path)] == [(1, 3.0), (2, 1.0)]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=3000))
def test_thinning_keeps_ends_and_extremes(values: list[float]) -> None:
    given_points = list(enumerate(values))
    kept = thinned(given_points)
    assert len(kept) <= MOST
    assert kept == sorted(kept)
    assert {given_points[0], given_points[-1]} <= set(kept)
    assert min(y for _, y in kept) == min(values)
    assert max(y for _, y in kept) == max(values)


@given(st.text())
def test_any_text_is_harmless_on_the_page(text: str) -> None:
    made = Shown(("topsecretvalue",)).html(text + "topsecretvalue")
    assert "topsecretvalue" not in made
    assert not set("<>\"'\x1b") & set(made)


@pytest.mark.parametrize(
    "text", ["WANDB_API_KEY=0123456789abcdef", 'export MY_TOKEN="abc def"', "hf_" + "x" * 24, "PASSWORD: 'q'"]
)
def test_secrets_are_hidden(text: str) -> None:
    assert "(hidden)" in hide(text)
    assert not re.search(r"0123|abc|xxx|q'", hide(text))


def test_a_hand_written_script_has_a_page_too(run: Run) -> None:
    raw = run.entry.read("run.json")
    assert raw is not None
    run.entry.write("run.json", {**raw, "hand": "/home/me/job.sh"})
    (run.run_dir / "script.sh").write_text("#!/bin/bash\nsrun <b>python</b> train.py\nexport API_KEY=abcdefghij\n")
    page = report(Run(run.entry, run.store))
    assert "srun &lt;b&gt;python" in page
    assert "abcdefghij" not in page
    assert "rank 3 on gpua001 failed first" in page
    assert "Who runs where" not in page
