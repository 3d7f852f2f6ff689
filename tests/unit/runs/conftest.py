"""A store of its own for each test, and a scheduler that is not one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from maple_parsl import schedulers
from maple_parsl.api import plan as make_plan
from maple_parsl.plan import Plan
from maple_parsl.runs import backend
from maple_parsl.runs.store import Store
from maple_parsl.schedulers.base import JobInfo, JobState, vanished


class FakeScheduler:
    """Keeps jobs in a dict; counts what it is asked; does what it is told to on submission."""

    def __init__(self) -> None:
        self.jobs: dict[str, JobInfo] = {}
        self.queries = 0
        self.finds = 0
        self.submissions: list[str] = []
        self.cancelled: list[str] = []
        self.on_submit: Callable[[Plan], None] = lambda plan: None

    def add(self, name: str, state: JobState = JobState.pending) -> str:
        job_id = str(1000 + len(self.jobs))
        self.jobs[job_id] = JobInfo(job_id, state, state.value.upper(), "squeue", name=name)
        return job_id

    def put(self, job_id: str, state: JobState, **more: object) -> None:
        name = self.jobs[job_id].name if job_id in self.jobs else None
        self.jobs[job_id] = JobInfo(job_id, state, state.value.upper(), "squeue", name=name, **more)  # type: ignore[arg-type]

    def submit(self, plan: Plan, script_file: Path) -> str:
        assert script_file.read_text() == plan.script
        self.on_submit(plan)
        self.submissions.append(plan.job_name)
        return self.add(plan.job_name)

    def query(self, job_ids: Iterable[str]) -> dict[str, JobInfo]:
        self.queries += 1
        return {job_id: self.jobs.get(job_id) or vanished(job_id, "squeue", "?") for job_id in job_ids}

    def find(self, names: Iterable[str]) -> dict[str, list[JobInfo]]:
        self.finds += 1
        return {name: [job for job in self.jobs.values() if job.name == name] for name in names}

    def cancel(self, job_id: str) -> None:
        self.cancelled.append(job_id)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MAPLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MAPLE_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("MAPLE_RUN_ROOT", "MAPLE_SITE_PATH", "MAPLE_SITE", "MAPLE_POLL_SECONDS", "SLURM_JOB_ID", "PBS_JOBID"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "home"


@pytest.fixture
def store(home: Path) -> Store:
    return Store()


@pytest.fixture
def fake(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeScheduler:
    """The scheduler behind every site, and an ``sbatch`` on PATH that is never called."""
    made = FakeScheduler()
    monkeypatch.setattr(schedulers, "scheduler", lambda kind, clusters=None: made)
    backend._backends.clear()
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sbatch", "qsub"):
        (folder / name).write_text("#!/bin/sh\nexit 99\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("MAPLE_SITE", "delta")
    return made


@pytest.fixture
def slurm_plan(home: Path) -> Plan:
    return make_plan("gpt", "ddp", "delta", nodes=1, gpus_per_node=1, walltime="30m", account="abcd-delta-gpu", **QUEUE)


QUEUE = {"queue": "gpuA100x4", "memory": "16G"}
WORDS = ("gpt", "ddp", "delta")
FIELDS = {"nodes": 1, "gpus_per_node": 1, "walltime": "30m", "account": "abcd-delta-gpu", **QUEUE}
