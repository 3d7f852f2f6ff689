"""A machine without a scheduler: each job is a session of processes that outlives the one that started it."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maple_parsl.errors import SchedulerError, SubmissionError
from maple_parsl.schedulers import commands
from maple_parsl.schedulers.base import JobInfo, JobState, vanished

if TYPE_CHECKING:
    from maple_parsl.plan import Plan

_ID = re.compile(r"local-(\d+)-(\d+)")
# The process names itself before it becomes the script: by its pid and when it started, so that a reused pid is
# no match. A link from that name to the run's folder, made in one step, is all that is kept of a job.
_START = r"""
read -r line <"/proc/$$/stat"
fields=(${line##*) })
export MAPLE_LOCAL_ID="local-$$-${fields[19]}"
ln -sn "$4" "$2/$MAPLE_LOCAL_ID@$3" || exit 73
exec 3>&1 >>"${5:-$MAPLE_LOCAL_ID.log}" 2>&1 || exit 73
echo "$MAPLE_LOCAL_ID" >&3
exec 3>&- bash "$1"
"""
_END = r"""
exec >/dev/null 2>&1
started() { read -r line <"/proc/$1/stat" && fields=(${line##*) }) && [ "${fields[0]}" != Z ] && echo "${fields[19]}"; }
for ((i = 0; i < $3 * 5; i++)); do
  [ "$(started "$1")" = "$2" ] || break
  sleep 0.2
done
kill -s KILL -- "-$1"
"""


class Local:
    """See :class:`~maple_parsl.schedulers.base.Scheduler`.

    Args:
        registry: folder of this machine that holds one link per job; by default below ``/tmp``, as it should
            be gone after a restart of the machine, when its processes are.
        grace: seconds between the request to end and the end by force.
    """

    def __init__(self, registry: Path | None = None, *, grace: int = 30) -> None:
        self._registry = registry or Path(f"/tmp/maple-local-{os.getuid()}")
        self._grace = grace

    def submit(self, plan: Plan, script_file: Path) -> str:
        """Start the script in a session of its own and return the job's id."""
        script = plan.script.encode()
        try:
            if not script_file.exists():
                script_file.write_bytes(script)
            if script_file.read_bytes() != script:
                raise SubmissionError(f"{script_file} is not the script of this plan; nothing was started")
        except OSError as error:
            raise SubmissionError(f"{script_file}: {error.strerror}; nothing was started") from None
        run_dir = plan.place.run_dir if plan.place else ""
        return self.start(script_file, plan.job_name, run_dir)

    def start(self, script_file: Path, name: str, run_dir: str = "") -> str:
        """Start any script under a job name; its output is appended to the run's log."""
        self._prepare()
        if "/" in name or "@" in name or not name:
            raise SubmissionError(f"{name!r} cannot be the name of a job on this machine")
        log = f"{run_dir}/log.txt" if run_dir else ""
        words = ("bash", "-c", _START, "maple", str(script_file.absolute()), str(self._registry), name)
        answer = commands.run(
            ["setsid", "--fork", *words, run_dir or os.getcwd(), log], locale=None, here=True, deadline=60
        )
        job_id = answer.out.strip()
        if not _ID.fullmatch(job_id):
            raise SubmissionError(f"the script could not be started: {answer.complaint}")
        return job_id

    def query(self, job_ids: Iterable[str]) -> dict[str, JobInfo]:
        """Each job by its process and its exit record."""
        asked = list(dict.fromkeys(job_ids))
        known = {job_id: (name, path) for job_id, name, path in self._jobs()} if asked else {}
        return {job_id: self._info(job_id, *known.get(job_id, (None, None))) for job_id in asked}

    def find(self, names: Iterable[str]) -> dict[str, list[JobInfo]]:
        """The jobs of these names since the machine was started."""
        found: dict[str, list[JobInfo]] = {name: [] for name in names}
        for job_id, name, path in self._jobs():
            if name in found:
                found[name].append(self._info(job_id, name, path))
        return found

    def cancel(self, job_id: str) -> None:
        """Ask the job to end, and end all its processes by force a while later."""
        pid, started = _parts(job_id)
        if not _alive(pid, started):
            return
        if self._registry.is_dir():  # a script that has not come to its launch leaves no record of being told
            self._told(job_id).touch()
        try:
            os.kill(pid, signal.SIGTERM)
        except ProcessLookupError:
            return
        except PermissionError:
            raise SchedulerError(f"job {job_id} belongs to another user") from None
        commands.run(["setsid", "--fork", "bash", "-c", _END, "maple", str(pid), started, str(self._grace)])

    def _told(self, job_id: str) -> Path:
        return self._registry / f"{job_id}.cancelled"

    def _prepare(self) -> None:
        try:
            self._registry.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = self._registry.lstat()
        except OSError as error:
            raise SubmissionError(f"{self._registry} cannot be made: {error.strerror}") from None
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
            raise SubmissionError(f"{self._registry} must be a folder that only you can write to; remove it")
        for link in self._registry.iterdir():  # of runs whose folder was removed
            if link.is_symlink() and not link.exists():
                link.unlink(missing_ok=True)
                self._told(link.name.partition("@")[0]).unlink(missing_ok=True)

    def _jobs(self) -> Iterator[tuple[str, str, Path]]:
        try:
            links = sorted(self._registry.iterdir(), key=lambda link: link.lstat().st_mtime)
        except OSError:
            return
        for link in links:
            job_id, mark, name = link.name.partition("@")
            if mark and _ID.fullmatch(job_id):
                yield job_id, name, link

    def _info(self, job_id: str, name: str | None, link: Path | None) -> JobInfo:
        if not _ID.fullmatch(job_id):
            return vanished(job_id, "process", "That is not the id of a job on this machine.")
        pid, started = _parts(job_id)
        if _alive(pid, started):
            return JobInfo(job_id, JobState.running, "running", "process", name=name, nodes=os.uname().nodename)
        if link is None:
            return vanished(job_id, "process", "No process of this job is on this machine, and nothing is known of it.")
        record = _record(link, job_id)
        if record is None and self._told(job_id).exists():
            text = "It was cancelled before its program started."
            return JobInfo(job_id, JobState.cancelled, "cancelled", "process", name=name, explanation=text)
        if record is None:
            text = (
                "Its process is gone and left no exit record: it was killed, the disk was full, or the machine"
                " was restarted."
            )
            return JobInfo(job_id, JobState.failed, "gone", "process", name=name, explanation=text)
        code, reason = int(record["code"]), str(record.get("reason", ""))
        state = JobState.done if code == 0 else JobState.cancelled if reason == "terminated" else JobState.failed
        number = record.get("signal")
        return JobInfo(
            *(job_id, state, reason, "process"),
            name=name,
            exit_code=code,
            exit_signal=number if isinstance(number, int) else None,
            nodes=os.uname().nodename,
        )


def _record(link: Path, job_id: str) -> dict[str, Any] | None:
    """The exit record of that job in its run's folder, or in the folder a script without one made itself."""
    for path in (link / "exit.json", link / "maple-runs" / job_id / "exit.json"):
        try:
            record = json.loads(path.read_text())
        except (OSError, ValueError):
            continue
        if isinstance(record, dict) and record.get("job_id") == job_id and isinstance(record.get("code"), int):
            return record
    return None


def _parts(job_id: str) -> tuple[int, str]:
    match = _ID.fullmatch(job_id)
    if match is None:
        raise SchedulerError(f"{job_id!r} is not the id of a job on this machine")
    return int(match[1]), match[2]


def _alive(pid: int, started: str) -> bool:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] not in "ZX" and fields[19] == started
