"""The workflow across sites: killed half way, run again, and finished without repeating anything."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.integration.globus.client import Client

EXAMPLE = Path(__file__).parents[3] / "examples/cross_site.py"


def test_it_is_killed_half_way_and_finishes_without_repeating_work(client: Client) -> None:
    words = client.stand.outside([sys.executable, str(EXAMPLE), "slurm-stand", "nvidia-stand"])
    first = subprocess.Popen(words, cwd=client.work, env=client.env, start_new_session=True)
    limit = time.monotonic() + 240
    jobs = client.folder / "maple/runs"
    while len(list(jobs.glob("cross-*/submitted.1.json"))) < 1:
        assert time.monotonic() < limit
        time.sleep(0.5)
    first.send_signal(signal.SIGKILL)
    first.wait()
    noted = {path.name: path.read_text() for path in (client.work / "cross-site").glob("run-*.json")}
    second = subprocess.run(words, cwd=client.work, env=client.env, capture_output=True, text=True, timeout=500)
    assert second.returncode == 0, second.stderr[-3000:]
    assert "better: cross-" in second.stdout
    after = {path.name: path.read_text() for path in (client.work / "cross-site").glob("run-*.json")}
    assert noted.items() <= after.items()
    assert len(client.runs()) == 2
    assert len(client.jobs_of(json.loads(after["run-0.json"]))) == 1
    best = json.loads((client.work / "cross-site/best.json").read_text())
    assert best["loss"] > 0
