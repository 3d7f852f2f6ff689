"""maple doctor: what it sees on a machine made for the test."""

from __future__ import annotations

import errno
import json
import os
import time
from pathlib import Path

import pytest

from maple_parsl.catalogue import Catalogue
from maple_parsl.cli import main
from maple_parsl.doctor import Asked, Check, examine


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


CONFIG = 'printf \'Configuration data as of %s\\n\' "$(date -d "$SKEW" +%Y-%m-%dT%H:%M:%S)"'


def cluster(tmp_path: Path, assoc: str = "abcd-delta-gpu||normal") -> None:
    """Commands of a Slurm cluster with one account and one partition."""
    for name in ("sbatch", "sacct"):
        tool(tmp_path / "bin", name, "exit 0")
    tool(tmp_path / "bin", "date", 'exec /bin/date "$@"')
    tool(tmp_path / "bin", "sinfo", "echo 'gpuA100x4|up|2-00:00:00|100'")
    tool(tmp_path / "bin", "sacctmgr", f"echo '{assoc}'")


def asked(tmp_path: Path, *, skew: str = "now", **named: str) -> dict[str, Check]:
    tool(tmp_path / "bin", "scontrol", CONFIG.replace("$SKEW", skew))
    (tmp_path / "bin" / "sh").unlink(missing_ok=True)
    environ = {
        "PATH": f"{tmp_path / 'bin'}:{tmp_path / 'system'}",
        "MAPLE_HOME": str(tmp_path / "home"),
        "MAPLE_SITE": "delta",
        "HOME": str(tmp_path),
    }
    look(tmp_path)  # makes the machine's own commands
    catalogue = Catalogue.load(environ, tmp_path)
    return {check.name: check for check in examine(catalogue, environ, Asked(**named))}


def test_account_and_queue_are_put_to_the_scheduler(tmp_path: Path) -> None:
    cluster(tmp_path)
    good = asked(tmp_path, account="abcd-delta-gpu", queue="gpuA100x4")
    assert (good["account and queue"].verdict, good["clock of the scheduler"].verdict) == ("ok", "ok")
    wrong = asked(tmp_path, account="other-delta-gpu", queue="gpuA100x4")["account and queue"]
    assert wrong.verdict == "fault"
    assert "other-delta-gpu" in wrong.saw
    assert "abcd-delta-gpu" in wrong.remedy
    absent = asked(tmp_path, account="abcd-delta-gpu", queue="gpuH200x8")["account and queue"]
    assert absent.verdict == "fault"
    assert "gpuH200x8" in absent.saw
    assert "gpuA100x4" in absent.remedy


def test_without_an_account_the_users_own_are_listed(tmp_path: Path) -> None:
    cluster(tmp_path)
    seen = asked(tmp_path)["account"]
    assert seen.verdict == "note"
    assert "yours are abcd-delta-gpu" in seen.remedy


@pytest.mark.parametrize(("skew", "verdict"), [("30 seconds", "note"), ("10 minutes ago", "fault")])
def test_a_scheduler_whose_clock_differs(tmp_path: Path, skew: str, verdict: str) -> None:
    cluster(tmp_path)
    seen = asked(tmp_path, skew=skew)["clock of the scheduler"]
    assert seen.verdict == verdict
    assert "this machine's" in seen.saw
    assert seen.remedy


def test_a_scheduler_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from maple_parsl.doctor import sites

    monkeypatch.setattr(sites, "DEADLINE", 0.3)
    cluster(tmp_path)
    tool(tmp_path / "bin", "sinfo", "exec /bin/sleep 60")
    began = time.monotonic()
    assert asked(tmp_path)["scheduler"].verdict == "fault"
    assert time.monotonic() - began < 20


def test_a_quota_that_is_used_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()

    def full(descriptor: int) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(os, "fsync", full)
    seen = look(tmp_path)["run store"]
    assert seen.verdict == "fault"
    assert "quota" in seen.saw
    assert "MAPLE_HOME" in seen.remedy
    assert list((tmp_path / "home").iterdir()) == []


def test_a_run_root_that_other_nodes_do_not_see(tmp_path: Path) -> None:
    for name in ("sbatch", "sinfo"):
        tool(tmp_path / "bin", name, "exit 0")
    seen = look(tmp_path, MAPLE_SITE="delta", MAPLE_RUN_ROOT="/dev/shm/runs")["run root"]
    assert seen.verdict == "note"
    assert "/dev/shm" in seen.saw


def test_an_environment_is_activated_and_imported(tmp_path: Path) -> None:
    venv = tmp_path / "venv" / "bin"
    venv.mkdir(parents=True)
    (venv / "activate").write_text(f"PATH='{venv}':$PATH\n")
    tool(venv, "python3", "echo torch 9.9 on Python 3.99")
    environ = {"PATH": os.environ["PATH"], "MAPLE_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}

    def tried() -> Check:
        named = Asked(site="local", environment=(("venv", str(tmp_path / "venv")),))
        found = examine(Catalogue.load(environ, tmp_path), environ, named)
        return next(check for check in found if check.name.startswith("environment on"))

    seen = tried()
    assert (seen.verdict, seen.saw) == ("ok", "torch 9.9 on Python 3.99")
    tool(venv, "python3", "echo No module named torch >&2; exit 1")
    seen = tried()
    assert seen.verdict == "fault"
    assert "No module named torch" in seen.saw


@pytest.mark.parametrize(("code", "verdict"), [(0, "ok"), (255, "note")])
def test_an_ssh_connection_is_looked_for_and_never_made(
    tmp_path: Path, code: int, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sites = tmp_path / ".maple" / "sites"
    sites.mkdir(parents=True)
    (sites / "delta.toml").write_text('extends = "delta"\n[remote]\nssh = "my-delta"\n')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    tool(tmp_path / "bin", "ssh", f'echo "$@" >>{tmp_path}/asked; exit {code}')
    assert look(tmp_path)["ssh to delta"].verdict == verdict
    assert "-O check -- my-delta" in (tmp_path / "asked").read_text()


def test_an_address_of_the_catalogue_alone_is_no_configuration(tmp_path: Path) -> None:
    assert not [name for name in look(tmp_path) if name.startswith(("ssh to", "endpoint of"))]


def test_node_says_its_cost_and_sends_nothing_unconfirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MAPLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MAPLE_SITE", "delta")
    cluster(tmp_path)
    tool(tmp_path / "bin", "sbatch", f"touch {tmp_path}/sent; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    words = ["doctor", "--node", "--site", "delta", "-A", "abcd-delta-gpu", "-q", "gpuA100x4"]
    assert main(words) == 8
    said = capsys.readouterr().err
    assert "0.17 node-hours" in said
    assert "nothing was submitted" in said
    assert not (tmp_path / "sent").exists()


@pytest.mark.timeout(120)
def test_node_on_this_machine_imports_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MAPLE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    main(["doctor", "--node", "--site", "local", "--json"])
    checks = json.loads(capsys.readouterr().out)["checks"]
    (seen,) = (check for check in checks if check["name"] == "environment on a node")
    assert seen["verdict"] == "ok", seen
    assert seen["saw"].startswith("torch ")
