"""Starts the mini-app as a cluster would: copied away, without Maple on the import path."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MINIAPPS = Path(__file__).resolve().parents[3] / "maple_parsl" / "miniapps"
SEVERAL = Path(__file__).resolve().with_name("several.py")
TIMEOUT = 500
"""Seconds after which a run counts as hung, on a slow and busy machine."""


def copy_of_miniapps(folder: Path) -> Path:
    """Copies the mini-apps to ``folder``, under a name that is no Python identifier; returns train.py."""
    target = folder / "mini-apps copy"
    shutil.copytree(MINIAPPS, target, ignore=shutil.ignore_patterns("__pycache__"))
    return target / "train.py"


def clean_environment(**extra: str) -> dict[str, str]:
    """The environment less all that Maple, Python and launchers read from it."""
    prefixes = ("MAPLE_", "PYTHON", "TORCHELASTIC", "MASTER_", "DS_")
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(prefixes) and k not in names}
    return {**kept, "OMP_NUM_THREADS": "1", "MAPLE_DEVICE": "cpu", **extra}


def torchrun_command(ranks: int, *script: str) -> list[str]:
    """torchrun on this host, on a port that the system chooses.

    -P keeps the working directory off the import path, so no module of this checkout is found.
    """
    elastic = ["--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", "--no-python"]
    start = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={ranks}", *elastic]
    return [*start, sys.executable, "-P", *script]


@dataclass
class Run:
    """What a finished run left behind."""

    folder: Path
    code: int
    stdout: str
    stderr: str

    def events(self, name: str) -> list[dict[str, Any]]:
        """The events called ``name``, from metrics.jsonl."""
        lines = (self.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        return [event for event in map(json.loads, lines) if event["event"] == name]

    def losses(self) -> dict[int, float]:
        """Step to loss; where a step was done twice, the later."""
        return {event["step"]: event["loss"] for event in self.events("step")}

    def ranks(self) -> list[dict[str, Any]]:
        """The ranks' own files, in order of rank."""
        files = (self.folder / "ranks").glob("*.json")
        return sorted((json.loads(file.read_text(encoding="utf-8")) for file in files), key=lambda r: r["rank"])

    def check_learned(self, ranks: int) -> Run:
        """Asserts a clean end, no warning, a loss that fell, and hashes that agree where they must."""
        assert self.code == 0, self.stderr
        assert "Warning" not in self.stderr
        (start,), (end,) = self.events("start"), self.events("end")
        assert start["world_size"] == ranks
        assert start["backend"] == "gloo"
        assert end["last_loss"] < 0.8 * end["first_loss"]
        files = self.ranks()
        assert [file["rank"] for file in files] == list(range(ranks))
        assert {file["job_params_sha256"] for file in files} == {end["params_sha256"]}
        by_scope: dict[str, set[str]] = {}
        for file in files:
            by_scope.setdefault(file["scope"], set()).add(file["params_sha256"])
        assert all(len(hashes) == 1 for hashes in by_scope.values())
        assert len({h for hashes in by_scope.values() for h in hashes}) == len(by_scope)
        return self


def run(command: list[str], folder: Path, **environment: str) -> Run:
    """Runs ``command`` to its end, with output to ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    env = clean_environment(MAPLE_RUN_DIR=str(folder), **environment)
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT)
    return Run(folder, done.returncode, done.stdout, done.stderr)
