"""Running a scheduler's command: what it inherits, and how it can go wrong."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maple_parsl.errors import SchedulerError
from maple_parsl.schedulers import commands, submission_environment
from maple_parsl.schedulers.slurm import Slurm


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def put(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


STRIPPED = (
    "SLURM_JOB_ID SLURM_NTASKS SLURM_TIME_FORMAT SBATCH_ACCOUNT SRUN_CPUS_PER_TASK SALLOC_PARTITION SQUEUE_FORMAT"
    " SACCT_FORMAT PBS_JOBID PBS_NODEFILE PMI_RANK PMIX_NAMESPACE OMPI_COMM_WORLD_RANK PALS_RANKID HYDRA_BOOTSTRAP"
    " MPI_LOCALRANKID RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT MAPLE_RUN_DIR MAPLE_JOB_ID MAPLE_ATTEMPT"
).split()
KEPT = (
    "SLURM_CONF PBS_CONF_FILE PBS_SERVER PBS_DEFAULT HOME PATH LD_LIBRARY_PATH MAPLE_CONFIG_HOME OMP_NUM_THREADS"
).split()


def test_what_an_outer_job_left_is_stripped() -> None:
    before = dict.fromkeys([*STRIPPED, *KEPT, "CUDA_VISIBLE_DEVICES"], "x")
    assert sorted(submission_environment(before)) == sorted(KEPT)
    assert sorted(submission_environment(before, here=True)) == sorted([*KEPT, "CUDA_VISIBLE_DEVICES"])


def test_a_temporary_folder_of_the_outer_job_is_stripped() -> None:
    inside = {"PBS_JOBID": "12.server", "TMPDIR": "/var/tmp/pbs.12.server"}
    assert submission_environment(inside) == {}
    assert submission_environment({"PBS_JOBID": "12.server", "TMPDIR": "/tmp"}) == {"TMPDIR": "/tmp"}


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_the_environment_is_never_changed_or_added_to(environ: dict[str, str]) -> None:
    before = dict(environ)
    clean = submission_environment(environ)
    assert environ == before
    assert clean.items() <= before.items()
    assert submission_environment(clean) == clean


def test_a_command_sees_only_the_clean_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(folder, "squeue", 'echo "${SLURM_JOB_ID-none} ${SQUEUE_FORMAT-none} $LC_ALL"')
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SQUEUE_FORMAT", "%i")
    monkeypatch.setenv("LC_TIME", "de_DE")
    assert commands.run(["squeue"]).out == "none none C\n"


def test_a_missing_command(folder: Path) -> None:
    with pytest.raises(commands.NotStartedError, match=r"the command nosuch is not on PATH; .* load the module"):
        commands.run(["nosuch"])
    (folder / "squeue").write_text("")
    (folder / "squeue").chmod(0o755)
    (folder / "bad").write_bytes(b"#!/no/such/shell\n")
    (folder / "bad").chmod(0o755)
    with pytest.raises(commands.NotStartedError, match="cannot be run"):
        commands.run(["bad"])


def test_a_hanging_command_is_ended_with_its_children(folder: Path) -> None:
    put(folder, "squeue", f"sleep 60 & echo $! >{folder}/child; wait")
    begin = time.monotonic()
    with pytest.raises(SchedulerError, match=r"squeue did not answer within 0\.5 s"):
        commands.run(["squeue"], deadline=0.5)
    assert time.monotonic() - begin < 5
    child = int((folder / "child").read_text())
    end = time.monotonic() + 5
    while Path(f"/proc/{child}/stat").exists() and " Z " not in Path(f"/proc/{child}/stat").read_text():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("said", ["<html>503</html>", "\x1f\x1f\x1f", "JOBID\n1 2 3"])
def test_nonsense_is_quoted(folder: Path, said: str) -> None:
    put(folder, "squeue", f"printf '%s\\n' '{said}'")
    with pytest.raises(SchedulerError, match="squeue answered what cannot be read: "):
        Slurm().query(["1"])


def test_words_are_grouped_below_the_systems_limit() -> None:
    words = [str(number) for number in range(1_000_000, 1_030_000)]
    groups = commands.batches(words)
    assert [word for group in groups for word in group] == words
    assert len(groups) == -(-len(words) * 8 // commands.ARGUMENT_BYTES)
    assert commands.batches(["1", "1"]) == [["1"]]
    assert commands.batches([]) == []
