"""A user at the head node of a testbed, with `maple` to type."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.testbeds.slurm import Testbed

ROOT = Path(__file__).parents[3]
SITE = ROOT / "tests" / "testbeds" / "slurm" / "sites" / "slurm-stand.toml"


class Login:
    """Runs `maple` on the head node; the run store and run directories are below ``folder``."""

    def __init__(self, bed: Testbed, folder: Path, **env: str) -> None:
        self.bed, self.folder = bed, folder
        self.env = {
            "PYTHONPATH": str(ROOT),
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": str(folder),
            "MAPLE_HOME": str(folder / "maple"),
            "MAPLE_SITE_PATH": str(SITE),
            "MAPLE_SITE": "slurm-stand",
            "MAPLE_POLL_SECONDS": "1",
            "OMP_NUM_THREADS": "1",
            **env,
        }
        self.work = folder / "work"
        self.work.mkdir(parents=True, exist_ok=True)

    def command(self, *words: str, env: Mapping[str, str] | None = None) -> list[str]:
        """The argv that runs `maple WORDS` on the head node."""
        prefix = self.bed.prefix_command(cwd=self.work, env={**self.env, **(env or {})})
        return [*prefix, sys.executable, "-c", "import sys; from maple_parsl.cli import main; sys.exit(main())", *words]

    def maple(
        self, *words: str, env: Mapping[str, str] | None = None, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words, env=env),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def json(self, *words: str, env: Mapping[str, str] | None = None, timeout: float = 120) -> dict[str, Any]:
        """`maple WORDS --json`, which must succeed."""
        words = (*words[:1], "--json", *words[1:])
        done = self.maple(*words, env=env, timeout=timeout)
        assert done.returncode == 0, f"{done.returncode}: {done.stderr}\n{done.stdout}"
        return dict(json.loads(done.stdout))

    def start(self, *words: str, env: Mapping[str, str] | None = None) -> str:
        """`maple run WORDS` without waiting, and without a preflight unless one is asked for; the run's id."""
        trial = () if "--preflight" in words else ("--preflight", "off")
        made = self.json(
            "run",
            "--yes",
            "--no-wait",
            "--walltime",
            "5m",
            "--queue",
            "gpu",
            "--python",
            sys.executable,
            *trial,
            *words,
            env=env,
        )
        return str(made["run"])

    def status(self, run: str) -> dict[str, Any]:
        return self.json("status", run)

    def until(self, run: str, *states: str, seconds: float = 120) -> dict[str, Any]:
        """Poll the run until it is in one of the states."""
        deadline = time.monotonic() + seconds
        while True:
            status = self.status(run)
            if status["state"] in states:
                return status
            assert time.monotonic() < deadline, f"{run} is {status}, not {states}\n{self.log(run)[-3000:]}"
            time.sleep(0.5)

    def run_dir(self, run: str) -> Path:
        return Path(self.status(run)["run_dir"])

    def log(self, run: str) -> str:
        return self.maple("logs", run).stdout

    def metrics(self, run: str) -> list[dict[str, Any]]:
        file = self.run_dir(run) / "metrics.jsonl"
        return [json.loads(row) for row in file.read_text().splitlines()] if file.exists() else []

    def ranks(self, run: str) -> list[dict[str, Any]]:
        """What each rank said of itself, in order of rank."""
        files = (self.run_dir(run) / "ranks").glob("*.json")
        return sorted((json.loads(file.read_text()) for file in files), key=lambda said: said["rank"])

    def wait_for(self, file: Path, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not (file.exists() and os.path.getsize(file)):
            assert time.monotonic() < deadline, f"no {file}"
            time.sleep(0.1)
