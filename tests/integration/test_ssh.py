"""A site over ssh: a real sshd on loopback, and a connection that the user opened."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from maple_parsl.errors import TransportError
from maple_parsl.transport.ssh import Ssh

STAND = Path(__file__).parents[1] / "testbeds/globus/sites/nvidia-stand.toml"
SSHD = shutil.which("sshd", path="/usr/sbin:/sbin")


class Host:
    """An sshd of this test, and the user's connection to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        for name in ("host", "user"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
            subprocess.run(words, check=True)
        (folder / "authorized").write_text((folder / "user.pub").read_text())
        (folder / "sshd_config").write_text(
            f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\n"
            f"PidFile {folder}/pid\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n"
        )
        known = (folder / "host.pub").read_text().split()
        (folder / "known").write_text(f"[127.0.0.1]:{port} {known[0]} {known[1]}\n")
        (folder / "config").write_text(
            f"Host far\n  HostName 127.0.0.1\n  Port {port}\n  User {getpass.getuser()}\n  IdentityFile {folder}/user\n"
            f"  IdentitiesOnly yes\n  UserKnownHostsFile {folder}/known\n  ControlMaster auto\n"
            f"  ControlPath {folder}/m-%C\n  ControlPersist yes\n"
        )
        self.daemon = subprocess.Popen(
            [str(SSHD), "-D", "-e", "-f", str(folder / "sshd_config")], stderr=subprocess.DEVNULL
        )

    def log_in(self) -> None:
        limit = time.monotonic() + 30
        while True:
            done = subprocess.run(["ssh", "-F", str(self.folder / "config"), "-fN", "far"], check=False)
            if done.returncode == 0:
                return
            assert time.monotonic() < limit
            time.sleep(0.3)

    def log_out(self) -> None:
        words = ["ssh", "-F", str(self.folder / "config"), "-O", "exit", "far"]
        subprocess.run(words, check=False, capture_output=True)

    def stop(self) -> None:
        self.log_out()
        self.daemon.terminate()
        self.daemon.wait(10)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    if SSHD is None or os.geteuid() != 0:
        if os.environ.get("CI") == "true":
            pytest.fail("these tests need root and openssh-server", pytrace=False)
        pytest.skip("these tests need root and openssh-server (make system)")
    separation = Path("/run/sshd")
    made = not separation.exists()
    separation.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="s", dir="/tmp"))  # short: the path of a socket has at most 107 bytes
    far = Host(folder)
    yield far
    far.stop()
    shutil.rmtree(folder)
    if made:
        shutil.rmtree(separation, ignore_errors=True)


def logins(host: Host) -> int:
    """How many connections its sshd serves."""
    words = ["pgrep", "-P", str(host.daemon.pid)]
    return len(subprocess.run(words, capture_output=True, text=True, check=False).stdout.split())


def test_calls_go_over_the_connection_the_user_opened(host: Host, tmp_path: Path) -> None:
    far = Ssh("far", sys.executable, str(host.folder / "config"))
    with pytest.raises(TransportError, match="log in once") as caught:
        far.call("where", root=str(tmp_path / "runs"))
    assert caught.value.certain
    assert logins(host) == 0
    host.log_in()
    weird = tmp_path / "runs"
    for _ in range(3):
        said = far.call("where", root=str(weird))
    assert said["root"] == str(weird)
    assert said["parsl"]
    assert logins(host) == 1
    host.log_out()
    with pytest.raises(TransportError, match="log in once"):
        far.call("where", root=str(weird))
    assert not list(host.folder.glob("m-*"))


def test_a_connection_that_dies_is_not_opened_again(host: Host, tmp_path: Path) -> None:
    host.log_in()
    far = Ssh("far", sys.executable, str(host.folder / "config"))
    far.call("where", root=str(tmp_path / "runs"))
    words = ["pkill", "-9", "-P", str(host.daemon.pid)]
    subprocess.run(words, check=False)
    with pytest.raises(TransportError):
        far.call("where", root=str(tmp_path / "runs"), deadline=20)
    assert logins(host) == 0


def test_a_python_that_is_not_there_and_a_slow_answer_are_told(host: Host, tmp_path: Path) -> None:
    host.log_in()
    config = str(host.folder / "config")
    with pytest.raises(TransportError, match="did not run Maple's program"):
        Ssh("far", "/no/such/python", config).call("where", root=str(tmp_path))
    (tmp_path / "slow").write_text("#!/bin/sh\nsleep 30\n")
    (tmp_path / "slow").chmod(0o755)
    with pytest.raises(TransportError, match="no answer") as caught:
        Ssh("far", str(tmp_path / "slow"), config).call("where", root=str(tmp_path), deadline=2)
    assert not caught.value.certain


def test_a_whole_run_over_ssh(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host.log_in()
    sites = tmp_path / "config-maple/sites"
    sites.mkdir(parents=True)
    text = STAND.read_text().partition("[remote]")[0].replace("nvidia-stand", "far")
    (sites / "far.toml").write_text(
        f'{text}[remote]\nsource = "test"\nchecked_on = 2026-12-01\nssh = "far"\npython = "{sys.executable}"\n'
        f'[defaults]\nrun_root = "{tmp_path}/runs"\n'
    )
    for name, value in (("MAPLE_HOME", "maple"), ("MAPLE_CONFIG_HOME", "config-maple")):
        monkeypatch.setenv(name, str(tmp_path / value))
    monkeypatch.setenv("MAPLE_SSH_CONFIG", str(host.folder / "config"))
    monkeypatch.setenv("MAPLE_POLL_SECONDS", "1")
    import maple_parsl as maple

    (tmp_path / "job.py").write_text("import os\nprint('rank', os.environ['RANK'], flush=True)\n")
    run = maple.run(script="job.py", site="far", python=sys.executable, cwd=tmp_path)
    outcome = run.result(120)
    assert outcome.ok, outcome
    assert {"rank 0", "rank 1"} <= set(run.logs().split("\n"))
    assert json.loads((run.entry.folder / "run.json").read_text())["via"]["kind"] == "ssh"
    assert maple.Run.open(run.id).status().state.value == "done"
