"""maple doctor: what it sees on a machine made for the test."""

from __future__ import annotations

from pathlib import Path

from maple_parsl.catalogue import Catalogue
from maple_parsl.doctor import Check, examine


def tool(folder: Path, name: str, body: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)


def look(tmp_path: Path, **env: str) -> dict[str, Check]:
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir(exist_ok=True)
    # The machine's own commands are kept out: it may have a scheduler.
    environ = {"PATH": f"{bin_folder}:{tmp_path / 'system'}", "MAPLE_HOME": str(tmp_path / "home"), **env}
    (tmp_path / "system").mkdir(exist_ok=True)
    for name in ("bash", "sh", "cat"):
        if not (tmp_path / "system" / name).exists():
            (tmp_path / "system" / name).symlink_to(f"/bin/{name}")
    return {check.name: check for check in examine(Catalogue.load(environ, tmp_path), environ)}


def test_a_plain_machine_is_fine(tmp_path: Path) -> None:
    seen = look(tmp_path)
    assert not [check for check in seen.values() if check.verdict == "fault"]
    assert "no cluster" in seen["this site"].saw
    assert seen["training Python"].verdict == "note"


def test_a_site_whose_scheduler_answers(tmp_path: Path) -> None:
    for name in ("sbatch", "sacct"):
        tool(tmp_path / "bin", name, "exit 0")
    tool(tmp_path / "bin", "sinfo", "printf 'gpu up\\ncpu up\\n'")
    seen = look(tmp_path, MAPLE_SITE="delta")
    assert seen["this site"].saw.startswith("delta")
    assert seen["scheduler"].saw == "slurm answers: 2 partitions or queues"


def test_a_site_whose_scheduler_is_down_is_a_fault_with_its_words(tmp_path: Path) -> None:
    for name in ("sbatch", "sacct"):
        tool(tmp_path / "bin", name, "exit 1")
    tool(tmp_path / "bin", "sinfo", "echo 'Unable to contact slurm controller' >&2; exit 1")
    seen = look(tmp_path, MAPLE_SITE="delta")
    assert seen["scheduler"].verdict == "fault"
    assert "Unable to contact" in seen["scheduler"].saw


def test_an_unknown_cluster_is_only_a_note(tmp_path: Path) -> None:
    tool(tmp_path / "bin", "sbatch", "exit 1")
    tool(tmp_path / "bin", "sinfo", "exit 1")
    tool(tmp_path / "bin", "sacct", "exit 1")
    seen = look(tmp_path)
    assert seen["scheduler"].verdict == "note"
    assert "maple sites add" in seen["this site"].remedy


def test_a_broken_site_file_is_named(tmp_path: Path) -> None:
    sites = tmp_path / ".maple" / "sites"
    sites.mkdir(parents=True)
    (sites / "delta.toml").write_text('name = "delta"\n[scheduler]\npolll_seconds = 3\n')
    seen = look(tmp_path)
    assert seen["site files"].verdict == "fault"
    assert "delta.toml" in seen["site files"].saw
    assert "polll_seconds" in seen["site files"].saw


def test_a_home_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    assert look(tmp_path, MAPLE_HOME=str(tmp_path / "taken" / "x"))["run store"].verdict == "fault"
