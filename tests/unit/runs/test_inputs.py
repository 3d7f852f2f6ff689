"""What a run reads, tested before anything queues."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import maple_parsl
from maple_parsl.cli import main
from maple_parsl.errors import RequestError
from maple_parsl.finding import Finding
from maple_parsl.plan import Plan
from maple_parsl.runs import inputs, place
from maple_parsl.runs.architecture import of_file
from maple_parsl.runs.run import Run
from maple_parsl.runs.store import Store
from maple_parsl.runs.sync import command
from tests import cases

from .conftest import FIELDS, WORDS, FakeScheduler

VALUE = "s3cr3t-value-of-the-test"


def plan(case: str = "delta", **fields: object) -> Plan:
    return cases.plan(case, model=None, script="train.py", **fields)


def check(made: Plan, folder: Path, now: float | None = None) -> list[Finding]:
    return inputs.check(made, cases.site(made.site), folder, now)


def elf(machine: int) -> bytes:
    return b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00" + machine.to_bytes(2, "little") + bytes(44)


def test_inputs_must_be_there_and_seen_by_the_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    monkeypatch.setattr(place, "_NODE_LOCAL", ("/dev/shm",))
    monkeypatch.setenv("DATA", str(tmp_path / "data"))
    site = cases.site("delta").model_copy(update={"storage": None})
    assert inputs.check(plan(inputs=["data", "$DATA"]), site, tmp_path) == []
    with pytest.raises(RequestError, match="is not there"):
        inputs.check(plan(inputs=["nothing"]), site, tmp_path)
    monkeypatch.setattr(place, "_NODE_LOCAL", (str(tmp_path),))
    with pytest.raises(RequestError, match="each node has for itself"):
        inputs.check(plan(inputs=["data"]), site, tmp_path)
    assert "ls -d -- data >/dev/null" in plan(inputs=["data"]).script


def test_an_input_about_to_be_purged_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "_NODE_LOCAL", ("/dev/shm",))
    (tmp_path / "data").write_text("x")
    site = cases.site("delta")
    storage = {"source": "the test", "checked_on": "2026-12-01", "purge_days": 30}
    site = site.model_validate({**site.model_dump(exclude_unset=True), "storage": storage})
    made = plan(inputs=["data"])
    assert inputs.check(made, site, tmp_path) == []
    (note,) = inputs.check(made, site, tmp_path, time.time() + 29.5 * 86400)
    assert (note.severity, note.rule) == ("note", "input-purge")
    assert "may be deleted after 30 days" in note.message
    assert "the test, checked 2026-12-01" in (note.evidence or "")


def test_a_purge_is_said_by_the_command_line_and_kept_with_the_plan(
    fake: FakeScheduler, store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site = Path("delta.toml")
    site.write_text(
        'extends = "delta"\n[storage]\nsource = "the test"\nchecked_on = 2026-12-01\npurge_days = 30\nnode_local = []\n'
    )
    monkeypatch.setattr(place, "_NODE_LOCAL", ("/dev/shm",))
    Path("data").write_text("x")
    os.utime("data", (time.time() - 40 * 86400,) * 2)
    line = [
        "run",
        "gpt",
        "ddp",
        str(site.absolute()),
        "-N",
        "1",
        "--gpus-per-node",
        "1",
        "-t",
        "30m",
        "--memory",
        "16G",
    ]
    line += ["-A", "abcd-delta-gpu", "-q", "gpuA100x4", "--input", "data", "--dry-run"]
    assert main(line) == 0
    assert "note: " in (said := capsys.readouterr().err)
    assert "was last used 40 days ago" in " ".join(said.split())
    (run,) = (Run.open(name) for name in store.ids())
    assert [found.rule for found in run.plan.findings if found.severity == "note"] == ["input-purge"]


@pytest.mark.parametrize("how", [{"dry_run": True}, {"here": True}])
def test_what_a_run_reads_is_looked_at_here_and_in_a_rehearsal(
    fake: FakeScheduler, store: Store, monkeypatch: pytest.MonkeyPatch, how: dict[str, bool]
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "1")
    Path("key").write_text(VALUE)
    Path("key").chmod(0o644)
    with pytest.raises(RequestError, match="chmod 600"):
        maple_parsl.run(*WORDS, **FIELDS, secrets={"WANDB_API_KEY": "key"}, **how)
    with pytest.raises(RequestError, match="is not there"):
        maple_parsl.run(*WORDS, **FIELDS, inputs=["nothing"], **how)
    assert not store.ids()


def test_a_secrets_file_must_be_private(tmp_path: Path) -> None:
    file = tmp_path / "key"
    made = plan(secrets={"WANDB_API_KEY": str(file)})
    with pytest.raises(RequestError, match="cannot be read"):
        check(made, tmp_path)
    file.write_text(VALUE)
    file.chmod(0o640)
    with pytest.raises(RequestError, match="chmod 600"):
        check(made, tmp_path)
    file.chmod(0o600)
    assert check(made, tmp_path) == []
    with pytest.raises(RequestError, match="not set in this shell"):
        check(plan(secrets={"MAPLE_TEST_TOKEN": None}), tmp_path)


def test_a_secrets_value_is_in_no_file_of_a_run(
    fake: FakeScheduler, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_text(VALUE)
    (tmp_path / "key").chmod(0o600)
    monkeypatch.setenv("HF_TOKEN", VALUE)
    run = maple_parsl.run(*WORDS, **FIELDS, secrets={"WANDB_API_KEY": str(tmp_path / "key"), "HF_TOKEN": None})
    written = [path for folder in (store.root, run.run_dir) for path in folder.rglob("*") if path.is_file()]
    assert len(written) > 5
    assert not [path for path in written if VALUE in path.read_text(errors="replace")]
    assert VALUE not in run.plan.to_json()


@pytest.mark.parametrize(("machine", "name"), [(62, "x86_64"), (183, "aarch64"), (21, "ppc64le"), (3, None)])
def test_the_processor_a_file_is_made_for(tmp_path: Path, machine: int, name: str | None) -> None:
    (tmp_path / "python").write_bytes(elf(machine))
    assert of_file(tmp_path / "python") == name
    (tmp_path / "i.sif").write_bytes(
        b"#!/usr/bin/env run-singularity\n\0" + b"SIF_MAGIC\0" + b"01\0" + b"04\0" + bytes(64)
    )
    assert of_file(tmp_path / "i.sif") == "aarch64"
    assert of_file(tmp_path / "absent") is None


def test_an_environment_of_another_processor_is_refused(tmp_path: Path) -> None:
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "python").write_bytes(elf(62))
    with pytest.raises(RequestError, match=r"made for x86_64.*are aarch64"):
        check(plan("deltaai", venv="venv"), tmp_path)
    (tmp_path / "venv" / "bin" / "python").write_bytes(elf(183))
    assert check(plan("deltaai", venv="venv"), tmp_path) == []


def test_what_was_kept_back_and_how_to_send_it(fake: FakeScheduler, store: Store) -> None:
    run = maple_parsl.run(*WORDS, **FIELDS, env={"WANDB_MODE": "offline"})
    assert command(run) is None
    old, new = Path("wandb/offline-run-1"), Path("wandb/offline run-2").with_name("offline-run-2 x")
    for folder in (old, new):
        folder.mkdir(parents=True)
    os.utime(old, (1, 1))
    assert command(Run.open(run.id)) == f"wandb sync '{Path.cwd() / new}'"
