"""A person outside the sites of the stand, with `maple` and Python to type."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.testbeds.globus import Stand

MAPLE = "import sys; from maple_parsl.cli import main; sys.exit(main())"
JOB = """import os, time
print('rank', os.environ['RANK'], 'here', flush=True)
time.sleep({seconds})
print('end', flush=True)
"""
SECONDS = 240.0


class Client:
    """Runs `maple` outside the sites; store and configuration are below ``folder``."""

    def __init__(self, stand: Stand, folder: Path) -> None:
        self.stand, self.folder = stand, folder
        self.work = folder / "work"
        self.work.mkdir()
        self.env = {**stand.client_environment(folder), "HOME": str(folder), "OMP_NUM_THREADS": "1"}

    def argv(self, *words: str) -> list[str]:
        return self.stand.outside([sys.executable, "-c", MAPLE, *words])

    def maple(self, *words: str, timeout: float = SECONDS) -> subprocess.CompletedProcess[str]:
        return self._run(self.argv(*words), timeout)

    def python(self, code: str, *words: str, timeout: float = SECONDS) -> str:
        """Run Python there; what it printed. It must succeed."""
        done = self._run(self.stand.outside([sys.executable, "-W", "error", "-c", code, *words]), timeout)
        assert done.returncode == 0, f"{done.returncode}: {done.stderr[-4000:]}\n{done.stdout}"
        return done.stdout

    def popen(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.argv(*words), cwd=self.work, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip

    def json(self, *words: str) -> dict[str, Any]:
        done = self.maple(*words[:1], "--json", *words[1:])
        assert done.returncode == 0, f"{done.returncode}: {done.stderr}\n{done.stdout}"
        return dict(json.loads(done.stdout))

    def job(self, seconds: float = 0) -> tuple[str, ...]:
        """The words of a small run on two nodes, its program written."""
        (self.work / "job.py").write_text(JOB.format(seconds=seconds))
        return (
            *("run", "--script", "job.py", "--site", "slurm-stand", "--nodes", "2", "--gpus-per-node", "1"),
            *("--walltime", "5m", "--yes", "--python", "python3", "--template", "plain", "--preflight", "off"),
        )

    def until(self, run: str, *states: str, seconds: float = SECONDS) -> dict[str, Any]:
        """Ask for the run's state until it is one of these."""
        limit = time.monotonic() + seconds
        while True:
            status = self.json("status", run)
            if status["state"] in states:
                return status
            assert time.monotonic() < limit, f"{run} is {status}, not {states}"
            time.sleep(1)

    def runs(self) -> list[str]:
        folder = self.folder / "maple/runs"
        return (
            sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")) if folder.exists() else []
        )

    def jobs_of(self, run: str) -> list[str]:
        """Slurm's ids of the jobs of that run, ended ones too."""
        words = ["squeue", "--noheader", "--states=all", f"--name=maple-{run}", "--format=%i"]
        return self.stand.bed.run(words, cwd="/").stdout.split()

    def submits(self, site: str = "slurm-stand") -> int:
        """How many submissions of calls the service got for the site's endpoint."""
        path = f"/v3/endpoints/{self.stand.endpoint_id(site)}/submit"
        return len([call for call in self.stand.calls() if call[2] == path])

    def _run(self, argv: Iterable[str], timeout: float) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            list(argv), cwd=self.work, env={**_inherited(), **self.env}, capture_output=True, text=True,
            timeout=timeout, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip


def _inherited() -> dict[str, str]:
    return {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
