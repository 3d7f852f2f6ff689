"""A testbed leaves nothing behind, however it ends, and does not disturb another."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.testbeds.slurm import BedConfig, Testbed, TestbedError
from tests.testbeds.slurm.fixtures import require_testbed

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(120)]
ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _can_start() -> None:
    require_testbed()


@pytest.fixture
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a short path: unix sockets lie below it."""
    return tmp_path_factory.mktemp("bed")


def mine(prefix: Path) -> list[str]:
    """Processes of the testbed there: its path is in their command line or environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if os.fsencode(prefix) in words:
                found.append(f"{entry.name} {words[:80]!r}")
    return found


def host() -> dict[str, object]:
    """What a testbed could have changed on the machine."""

    def names(*command: str) -> list[str]:
        return sorted(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines())

    return {
        "links": names("ip", "-oneline", "-brief", "link"),
        "addresses": names("ip", "-oneline", "-brief", "address"),
        "namespaces": names("ip", "netns"),
        "mounts": Path("/proc/self/mounts").read_text(),
        "hosts": Path("/etc/hosts").read_text(),
        "name": os.uname().nodename,
        "slurm": sorted(os.listdir("/etc/slurm")) if os.path.isdir("/etc/slurm") else None,
    }


def wait_gone(prefix: Path) -> None:
    end = time.monotonic() + 10
    while mine(prefix):
        assert time.monotonic() < end, mine(prefix)
        time.sleep(0.05)


def test_nothing_is_left_on_the_host() -> None:
    before = host()
    with Testbed(BedConfig(nodes=2)) as bed:
        prefix = bed.prefix
        bed.submit("#!/bin/bash\nsleep 300 & sleep 300\n", "-N2", "--output=/dev/null")
        bed.run(["sh", "-c", "setsid -f sleep 301 >/dev/null 2>&1"])
        assert host() == before
        assert mine(prefix)
    wait_gone(prefix)
    assert host() == before
    assert not prefix.exists()
    bed.stop()


def test_two_testbeds_at_once() -> None:
    with Testbed(BedConfig(nodes=2)) as one, Testbed(BedConfig(nodes=3, node_prefix="other")) as two:
        job = one.submit("#!/bin/bash\nsleep 300\n", "--output=/dev/null")
        one.wait_job(job, "RUNNING")
        assert two.run(["squeue", "-h"]).stdout == ""
        hosts = two.run(["srun", "-N3", "hostname"]).stdout.split()
        assert sorted(hosts) == ["other1", "other2", "other3"]
        one.stop()
        assert two.run(["srun", "-N2", "hostname"]).returncode == 0


def test_a_killed_process_takes_its_testbed_along(short: Path) -> None:
    code = (
        "import sys, time\nfrom tests.testbeds.slurm import *\n"
        "bed = Testbed(BedConfig(nodes=1), prefix=sys.argv[1]).start()\n"
        "print('up', flush=True)\ntime.sleep(99)\n"
    )
    command = [sys.executable, "-c", code, str(short)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as user:
        assert user.stdout is not None
        assert user.stdout.readline() == "up\n"
        user.send_signal(signal.SIGKILL)
    wait_gone(short)
    with Testbed(BedConfig(nodes=1), prefix=short) as again:
        assert again.run(["srun", "hostname"]).stdout.strip() == "node1"


def test_a_killed_controller_comes_back() -> None:
    with Testbed(BedConfig(nodes=1)) as bed:
        bed.stop_controller("kill")
        assert not bed.answers()
        bed.start_controller()
        bed.wait_idle()
        assert bed.run(["srun", "hostname"]).stdout.strip() == "node1"


def test_a_start_replaces_what_is_up_there(short: Path) -> None:
    first = Testbed(BedConfig(nodes=1), prefix=short, detach=True).start()
    with Testbed(BedConfig(nodes=2), prefix=short) as second:
        assert second.run(["sinfo", "-h", "-p", "debug", "-o", "%D"]).stdout.strip() == "2"
    assert not first.is_up
    first.stop()
    wait_gone(short)


def test_the_command_line(short: Path) -> None:
    def call(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tests.testbeds.slurm", *words]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    prefix = f"--prefix={short}"
    assert call("status", prefix).returncode == 1
    assert call("exec", prefix, "--", "true").returncode == 1
    up = call("up", prefix, "--nodes=2", "--gpus=0")
    assert up.returncode == 0, up.stderr
    said = call("exec", prefix, "--", "srun", "-N2", "-l", "hostname").stdout
    assert sorted(said.splitlines()) == ["0: node1", "1: node2"]
    assert call("exec", prefix, "--", "sh", "-c", "exit 5").returncode == 5
    assert call("exec", prefix, "--node=node2", "--", "hostname").stdout == "node2\n"
    assert "node[1-2]" in call("status", prefix).stdout
    assert call("down", prefix).returncode == 0
    assert call("down", prefix).returncode == 0
    assert not short.exists()
    wait_gone(short)


def test_a_folder_with_other_files_is_left_alone(short: Path) -> None:
    (short / "etc").mkdir()
    (short / "etc/precious").touch()
    with pytest.raises(TestbedError, match="no testbed made"):
        Testbed(prefix=short).start()
    Testbed.attach(short).remove()
    assert (short / "etc/precious").exists()
