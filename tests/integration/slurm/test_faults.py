"""Faulty jobs on a real Slurm: each fails, is diagnosed from its own log, corrected, and then really trains.

All jobs of a kind are submitted together. A short sample runs by default, every fault with MAPLE_FULL=1.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from maple_parsl.catalogue import Catalogue
from maple_parsl.correction import Correction, correct
from maple_parsl.diagnosis import Diagnosis, LogSource, diagnose
from maple_parsl.rules import check
from maple_parsl.site import Site
from tests.integration.slurm.login import SITE
from tests.testbeds.slurm import Testbed

pytestmark = [pytest.mark.slurm, pytest.mark.torch, pytest.mark.timeout(900)]
HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
FULL = os.environ.get("MAPLE_FULL") == "1"
FAULTS: dict[str, dict[str, Any]] = {
    name: fault
    for name, fault in tomllib.loads((HERE / "faults.toml").read_text(encoding="utf-8")).items()
    if FULL or fault.get("sample")
}
TAKEN_PORT = 29555  # by another process on every node
COMMON = {"--nodes": "2", "--partition": "gpu", "--time": "00:03:00", "--gpus-per-node": "1", "--mem": "12G"}


def text_of(name: str, fault: Mapping[str, Any]) -> str:
    """The whole script: directives that the fault does not state itself, then the fault's lines."""
    rows = fault["script"].strip("\n").split("\n")
    own = 0
    while rows[own].startswith("#SBATCH"):
        own += 1
    lines = [fault.get("shebang", "#!/bin/bash"), f"#SBATCH --job-name={name}", "#SBATCH --output=out-%j.log"]
    lines += [f"#SBATCH {option}={value}" for option, value in COMMON.items() if option not in fault["script"]]
    lines += [*rows[:own], f". {BIN}/activate", *rows[own:], ""]
    return ("\r\n" if fault.get("crlf") else "\n").join(lines)


@dataclass
class Trial:
    """One fault's way: its script, the log it failed with, what was said of it, and the log of the corrected one."""

    name: str
    folder: Path
    script: str
    state: str = ""
    log: str = ""
    refused: bool = False
    diagnosis: Diagnosis | None = None
    correction: Correction | None = None
    state_after: str = ""
    log_after: str = ""
    jobs: list[int] = field(default_factory=list)

    def submit(self, bed: Testbed, script: str, timeout: int) -> int | None:
        """The job's number; None when sbatch refuses, whose words are then the log."""
        path = self.folder / "job.sh"
        path.write_text(script, encoding="utf-8", newline="")
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "TRAIN_TIMEOUT": str(timeout)}
        sent = bed.run(["sbatch", "--parsable", "job.sh"], cwd=self.folder, env=environment, check=False)
        if sent.returncode:
            self.log = sent.stdout + sent.stderr
            return None
        self.jobs.append(int(sent.stdout.strip()))
        return self.jobs[-1]

    def read(self, job: int) -> str:
        return (self.folder / f"out-{job}.log").read_text(encoding="utf-8", errors="replace")


@contextmanager
def port_taken(bed: Testbed) -> Iterator[None]:
    """Another process holds the port on every node, as another job on a shared node would."""
    code = f"import socket, time; s = socket.create_server(('', {TAKEN_PORT})); time.sleep(1200)"
    holders = [
        subprocess.Popen([*bed.prefix_command(node), sys.executable, "-c", code], stdin=subprocess.DEVNULL)
        for node in bed.nodes
    ]
    try:
        yield
    finally:
        for holder in holders:
            holder.kill()
            holder.wait()


def site() -> Site:
    return Catalogue.load({**os.environ, "MAPLE_SITE_PATH": str(SITE)}).get("slurm-stand").site


def ended(bed: Testbed, jobs: list[int], seconds: float) -> dict[int, str]:
    """Wait for all; their states."""
    deadline = time.monotonic() + seconds
    waiting, states = list(jobs), {}
    while waiting and time.monotonic() < deadline:
        there = set(bed.run(["squeue", "-h", "-o", "%i"]).stdout.split())
        for job in [job for job in waiting if str(job) not in there]:
            states[job] = bed.job_state(job)
            waiting.remove(job)
        time.sleep(0.5)
    for job in waiting:
        states[job] = f"still {bed.job_state(job)}"
    return states


@pytest.fixture(scope="module")
def trials(slurm: Testbed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Trial]]:
    made: dict[str, Trial] = {}
    program = (HERE / "fault_program.py").read_text(encoding="utf-8")
    known = site()
    begun: dict[str, int] = {}
    with port_taken(slurm):
        for name, fault in FAULTS.items():
            folder = tmp_path_factory.mktemp(name)
            (folder / "train.py").write_text(program, encoding="utf-8")
            trial = made[name] = Trial(name, folder, text_of(name, fault))
            job = trial.submit(slurm, trial.script, timeout=15)
            trial.refused = job is None
            if job is not None:
                begun[name] = job
        states = ended(slurm, list(begun.values()), 400)
        again: dict[str, int] = {}
        for name, trial in made.items():
            if name in begun:
                trial.state, trial.log = states[begun[name]], trial.read(begun[name])
            kind = "submission" if trial.refused else "log"
            trial.diagnosis = diagnose([LogSource.of_text("job.log", trial.log, kind)], trial.script, known)
            found = trial.diagnosis if trial.diagnosis.causes else None
            trial.correction = correct(trial.script, found, known)
            job = trial.submit(slurm, trial.correction.text, timeout=120)
            if job is None:
                trial.log_after = trial.log
            else:
                again[name] = job
        states = ended(slurm, list(again.values()), 400)
    for name, job in again.items():
        made[name].state_after, made[name].log_after = states[job], made[name].read(job)
    yield made
    slurm.cancel_all()
    slurm.wait_idle()


@pytest.mark.parametrize("name", FAULTS)
def test_the_fault_is_real_is_named_and_is_mended(trials: dict[str, Trial], name: str) -> None:
    fault, trial = FAULTS[name], trials[name]
    assert trial.refused == fault.get("refused", False), trial.log
    wrong_world = fault.get("silent")
    if wrong_world:
        assert trial.state == "COMPLETED", trial.log
        assert f"world {wrong_world}," in trial.log
        found = {finding.fault_class for finding in check(trial.script, site())}
        assert fault["rule_class"] in found
    else:
        assert trial.refused or trial.state in ("FAILED", "TIMEOUT"), (trial.state, trial.log)
        assert "trained" not in trial.log
        assert trial.diagnosis is not None
        assert trial.diagnosis.causes, trial.log
        cause = trial.diagnosis.causes[0]
        assert (cause.fault_class, cause.where) == (fault["class"], fault["where"]), (cause, trial.log)
        assert fault["evidence"] in cause.evidence.text
        assert cause.evidence.text.strip() in trial.log or cause.evidence.line <= trial.log.count("\n") + 1
    assert trial.correction is not None
    assert trial.correction.correct, trial.correction.left
    assert trial.correction.notes, "the change is told"
    assert trial.state_after == "COMPLETED", (trial.correction.text, trial.log_after)
    assert "trained" in trial.log_after, (trial.correction.text, trial.log_after)
    assert "world 2," in trial.log_after
    first, last = re.findall(r"loss ([\d.]+) to ([\d.]+)", trial.log_after)[0]
    assert float(last) < float(first)


def test_the_kinds_are_many() -> None:
    every = tomllib.loads((HERE / "faults.toml").read_text(encoding="utf-8"))
    assert len(every) >= 15
    assert sum(bool(fault.get("sample")) for fault in every.values()) >= 5
    assert len({fault.get("class") or fault["rule_class"] for fault in every.values()}) >= 10


def test_the_program_says_the_same_in_words_of_the_command_line(trials: dict[str, Trial], tmp_path: Path) -> None:
    """``maple diagnose`` and ``maple correct`` on the files of one of the failed jobs."""
    trial = trials["localhost"]
    (tmp_path / "job.sh").write_text(trial.script, encoding="utf-8")
    (tmp_path / "out.log").write_text(trial.log, encoding="utf-8")
    words = [sys.executable, "-c", "import sys; from maple_parsl.cli import main; sys.exit(main())"]
    environment = {**os.environ, "MAPLE_SITE_PATH": str(SITE), "MAPLE_HOME": str(tmp_path)}

    def maple(*arguments: str) -> dict[str, Any]:
        done = subprocess.run(
            [*words, *arguments, "--json"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    said = maple("diagnose", "out.log", "--script", "job.sh", "--site", "slurm-stand")["causes"][0]
    assert (said["class"], said["where"]) == ("rendezvous_address", "script")
    assert trial.correction is not None
    assert maple("correct", "job.sh", "--log", "out.log", "--site", "slurm-stand")["text"] == trial.correction.text
