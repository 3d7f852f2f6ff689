"""What tests ask of the cluster: submit, look, wait, release."""

from __future__ import annotations

import os
import re
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from .machine import TestbedError, wait_until

PathLike = str | os.PathLike[str]
FAILED = (
    "FAILED",
    "CANCELLED",
    "TIMEOUT",
    "NODE_FAIL",
    "PREEMPTED",
    "OUT_OF_MEMORY",
    "BOOT_FAIL",
    "DEADLINE",
)
ENDED = frozenset({"COMPLETED", *FAILED})


class JobCommands(ABC):
    """The part of a testbed that deals with jobs; it needs only `run`."""

    nodes: tuple[str, ...]
    prefix: Path

    @abstractmethod
    def run(
        self,
        argv: Sequence[PathLike],
        *,
        node: str | None = None,
        check: bool = True,
        timeout: float = 60,
        input: str | None = None,
        cwd: PathLike | None = None,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]: ...

    def submit(self, script: PathLike, *options: str, cwd: PathLike | None = None) -> int:
        """sbatch a script: a path, or the text itself (it begins with #!). The job's number."""
        text = os.fspath(script)
        if text.startswith("#!"):
            done = self.run(["sbatch", "--parsable", *options], input=text, cwd=cwd)
        else:
            done = self.run(["sbatch", "--parsable", *options, text], cwd=cwd)
        return int(done.stdout.strip().split(";")[0])

    def test_only(self, script: str, *options: str) -> subprocess.CompletedProcess[str]:
        """What `sbatch --test-only` says to a script's text: 0 if it would be taken; its words on stderr."""
        return self.run(["sbatch", "--test-only", *options], input=script, check=False, cwd="/")

    def job(self, job: int) -> dict[str, str]:
        """The fields of `scontrol show job`."""
        line = self.run(["scontrol", "--oneliner", "show", "job", str(job)]).stdout
        return dict(re.findall(r"(\w+(?:/\w+|:\w+)?)=(.*?)(?=\s+\w+(?:/\w+|:\w+)?=|\s*$)", line))

    def job_state(self, job: int) -> str:
        return self.job(job)["JobState"]

    def wait_job(self, job: int, *states: str, timeout: float = 60) -> dict[str, str]:
        """Wait until the job is in one of the states (any ended state if none is named); its fields."""
        wanted = frozenset(states) or ENDED
        try:
            wait_until(lambda: self.job_state(job) in wanted, "", timeout, 0.1)
        except TestbedError:
            fields = self.job(job)
            what = f"is {fields['JobState']} ({fields.get('Reason')}) after {timeout:g} s"
            raise TestbedError(f"job {job} {what}, not {'/'.join(sorted(wanted))}") from None
        return self.job(job)

    def release(self, job: int) -> None:
        """Let a requeued job start now: Slurm holds it back for two minutes."""
        self.run(["scontrol", "update", f"jobid={job}", "starttime=now"])

    def cancel_all(self) -> None:
        """Cancel every job and wait until the nodes are free again."""
        self.run(["scancel", "--full", "--user=root"], check=False)
        self.run(["scancel", "--signal=KILL", "--full", "--user=root"], check=False)
        wait_until(lambda: not self.run(["squeue", "-h"]).stdout.strip(), "the queue to be empty", 40, 0.1)

    def node_state(self, node: str) -> str:
        """As sinfo says it, without its flags: idle, mixed, allocated, down, ..."""
        said = self.run(["sinfo", "-h", "-n", node, "-p", "debug", "-o", "%T"]).stdout
        return said.strip().rstrip("*~#!%$@^-+")

    def wait_idle(self, timeout: float = 40) -> None:
        """Wait until every node is idle."""
        wanted = len(self.nodes)
        if wanted:
            idle = ["sinfo", "-h", "-p", "debug", "-t", "idle", "-o", "%D"]
            all_idle = [str(wanted)]
            wait_until(lambda: self.run(idle).stdout.split() == all_idle, "all nodes to be idle", timeout)
