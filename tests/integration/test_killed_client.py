"""kill -9 of a submitting client, against a stand-in for Slurm's commands (shell scripts, named as such)."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from maple_parsl.runs import backend, recover
from tests.integration import kills

pytestmark = pytest.mark.timeout(300)

SBATCH = """#!/bin/bash
# Stand-in: takes the script's job name into a table of jobs, nothing is run.
script=${@: -1}
name=$(sed -n 's/^#SBATCH --job-name=//p' "$script") || exit 1
[ -n "$name" ] || exit 1
n=100
until mkdir "$STANDIN/$n" 2>/dev/null; do n=$((n + 1)); done
echo "$name" >"$STANDIN/$n/name"
echo "Submitted batch job $n"
"""
SQUEUE = """#!/bin/bash
# Stand-in: every job of the table is pending.
for option in "$@"; do
  case $option in --name=*) names=,${option#*=}, ;; --jobs=*) ids=,${option#*=}, ;; esac
done
for job in "$STANDIN"/*; do
  id=${job##*/}
  read -r name 2>/dev/null <"$job/name" || continue
  case ${names-,$name,}${ids-,$id,} in *,"$name",*,"$id",*)
    printf '%s\\x1f%s\\x1fPENDING\\x1fPriority\\x1f0\\x1fN/A\\x1f(null)\\x1f0\\x1f%s\\n' "$id" "$id" "$name" ;;
  esac
done
"""
SACCT = "#!/bin/sh\necho 'Slurm accounting storage is disabled' >&2\nexit 1\n"


def test_no_job_lost_and_none_double(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kills.prepare(tmp_path, monkeypatch)
    commands = tmp_path / "commands"
    commands.mkdir()
    (tmp_path / "jobs").mkdir()
    for name, text in (("sbatch", SBATCH), ("squeue", SQUEUE), ("sacct", SACCT), ("scancel", "#!/bin/sh\n")):
        (commands / name).write_text(text)
        (commands / name).chmod(0o755)
    first = kills.slow(tmp_path / "slow", str(commands / "sbatch"))
    monkeypatch.setenv("PATH", f"{first}:{commands}:{os.environ['PATH']}")
    monkeypatch.setenv("STANDIN", str(tmp_path / "jobs"))
    monkeypatch.setattr(recover, "GRACE_HERE", 1.0)
    backend._backends.clear()
    rng = random.Random(20261201)
    pace = kills.pace()
    found = []
    for _ in range(int(os.environ.get("MAPLE_KILLS", "10"))):
        found.append(kills.kill_one(rng, pace))
        kills.check(found[-1])
    print(kills.summary(found))
    assert any(one.in_time and one.run_id for one in found), found
