"""A script runs contained, within limits, and cannot harm the machine or fool the record."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from maple_parsl.judge.judging import judge
from maple_parsl.judge.sandbox import Sandbox
from maple_parsl.judge.sites import judged_site
from maple_parsl.judge.submission import read
from maple_parsl.judge.world import world
from tests.judge.good import GOOD

SCRIPT, CASE = GOOD["elastic"]


def output(sandbox: Sandbox, body: str, seconds: float = 10) -> tuple[dict[str, object], str]:
    script = "#!/bin/bash\n#SBATCH -N 2\n" + body
    site = judged_site("perlmutter")
    made = {**world(CASE, site, read(script, "slurm"), script), "seconds": seconds}
    record = sandbox.run(made)
    return record, str(record["output"])


def test_nothing_of_this_machine_is_there(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    _, said = output(sandbox, f"ls {tmp_path} /root /home /project 2>&1; ls -d /proc/[0-9]* | wc -l")
    assert "secret" not in said
    assert "user" in said
    assert int(said.split()[-1]) < 20


def test_there_is_no_network_and_no_power(sandbox: Sandbox) -> None:
    _, said = output(
        sandbox,
        "(exec 3<>/dev/tcp/127.0.0.1/22) 2>&1 | tail -c 60\n"
        "grep CapEff /proc/self/status\nmount -t tmpfs x /mnt 2>&1 || echo no mount\n"
        "touch /usr/bin/x /etc/x 2>&1 || echo no write\nunshare -Ur true 2>&1 || echo no namespace\n",
    )
    assert "unreachable" in said
    assert "CapEff:\t0000000000000000" in said
    assert "no mount" in said
    assert "no write" in said
    assert "no namespace" in said


@pytest.mark.parametrize("body", ["sleep 60", "while :; do :; done", "trap '' TERM INT; sleep 60"])
def test_a_script_that_does_not_end_is_ended(sandbox: Sandbox, body: str) -> None:
    record, _ = output(sandbox, body, seconds=0.8)
    assert record["timed_out"] is True


def test_a_full_disk_is_the_scripts_own(sandbox: Sandbox) -> None:
    record, _ = output(sandbox, "head -c 2G /dev/zero > $SCRATCH/big || exit 7")
    assert record["code"] == 7


def test_what_a_script_writes_to_the_judge_is_no_harm(sandbox: Sandbox) -> None:
    record, _ = output(sandbox, "echo nonsense > /judge/ask; echo 999999 > /judge/ask; echo '-1' >/judge/ask; true")
    assert record["code"] == 0
    assert record["processes"] == []


def test_hosts_have_names_and_temporary_files_of_their_own(sandbox: Sandbox) -> None:
    _, said = output(
        sandbox, "touch /tmp/here; srun -n 2 sh -c 'echo $SLURM_NODEID $(hostname) $(uname -n) $(ls /tmp)'"
    )
    assert sorted(said.splitlines()) == ["0 nid000012 nid000012 here", "1 nid000015 nid000015"]


def test_helpers_of_a_script_really_run(sandbox: Sandbox) -> None:
    _, said = output(sandbox, "echo $(python -c 'print(6 * 7)'); python3 - <<'EOF'\nprint('from a document')\nEOF\n")
    assert said.split("\n")[:2] == ["42", "from a document"]


def test_not_a_script(sandbox: Sandbox) -> None:
    assert judge("\0", CASE, sandbox).kinds == {"script"}
    assert "account" in judge("", CASE, sandbox).kinds
    assert not judge("\N{SNOWMAN}\n" * 50, CASE, sandbox).good


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_a_plain_user_can_judge_too() -> None:
    program = (
        "from maple_parsl.judge.inside import kernel, enter\n"
        "kernel.become(65534, 65534)\n"
        "first = enter.isolate()\n"
        "if first: sys.exit(os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]))\n"
        "os._exit(0 if os.getpid() == 1 and os.getuid() == 0 else 1)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", "import os, sys\n" + program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
