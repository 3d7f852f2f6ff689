"""Scripts of one's own on a real Slurm: sent once, unchanged, told by the scheduler."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import maple_parsl
from maple_parsl.cli import main
from maple_parsl.runs.run import Run
from maple_parsl.runs.state import RunState
from tests.integration.slurm.test_sweeps import ONE, bed
from tests.testbeds.slurm.cluster import Testbed

__all__ = ["bed"]
pytestmark = [pytest.mark.slurm, pytest.mark.timeout(240)]
SCRIPT = """\
#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --time=5
#SBATCH --output=mine-%j.txt
echo "I am $0 with $1"
exit {code}
"""


def submitted(capsys: pytest.CaptureFixture[str], code: int, *words: str) -> Run:
    Path("job.sh").write_text(SCRIPT.format(code=code))
    assert main(["submit", "job.sh", "--site", "bed", "--json", *words]) == 0
    return Run.open(json.loads(capsys.readouterr().out)["run"])


def test_its_bytes_its_log_and_its_code(bed: Testbed, capsys: pytest.CaptureFixture[str]) -> None:
    run = submitted(capsys, 0, "--", "--comment=mine")
    outcome = run.result(100)
    assert (outcome.state, outcome.code) == (RunState.DONE, 0)
    assert (run.run_dir / "script.sh").read_text() == SCRIPT.format(code=0)
    assert "I am" in run.logs()
    assert Path(f"mine-{outcome.job_id}.txt").exists()
    job = bed.job(int(outcome.job_id or 0))
    assert (job["Comment"], job["JobName"]) == ("mine", f"maple-{run.id}")
    assert run.summary.node_hours == pytest.approx(5 / 60)
    failed = submitted(capsys, 7)
    outcome = failed.result(100)
    assert (outcome.state, outcome.code) == (RunState.FAILED, 7)
    assert "with code 7" in outcome.cause


def test_a_faulty_one_is_not_sent(capsys: pytest.CaptureFixture[str]) -> None:
    Path("job.sh").write_text("#!/bin/bash\n#SBATCH --nodes=2\necho hello\n#SBATCH --time=5\nsrun --nodes=9 hostname\n")
    assert main(["submit", "job.sh", "--site", "bed"]) == 4
    assert "error: line" in capsys.readouterr().err
    assert not maple_parsl.runs()


def test_what_changed_since_an_earlier_run(capsys: pytest.CaptureFixture[str]) -> None:
    Path("program.py").write_text("print('ran')\n")
    run = maple_parsl.run(script="program.py", **ONE)
    words = "--script program.py --site bed -N 1 --gpus-per-node 2 -t 10m -q gpu --cpus 1".split()
    assert main(["plan", *words, "--diff", run.id]) == 0
    said = capsys.readouterr().out
    assert "gpus_per_node: 1 -> 2" in said
    assert "-#SBATCH --time=00:05:00" in said
    assert "+#SBATCH --time=00:10:00" in said
    assert run.id not in said.partition("\n")[2]
    same = "--script program.py --site bed -N 1 --gpus-per-node 1 -t 5m -q gpu --cpus 1".split()
    assert main(["plan", *same, "--diff", run.id]) == 0
    assert "nothing changed" in capsys.readouterr().out
    assert run.result(100).ok
