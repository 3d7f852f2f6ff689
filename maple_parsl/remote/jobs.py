"""A job at a site: submitted through Parsl's provider, or started on a machine without a scheduler."""

from __future__ import annotations

import inspect
import os
import shlex
import shutil
import signal
import socket
import subprocess
from typing import Any

from maple_parsl.remote.folders import Refused
from maple_parsl.schedulers.environment import submission_environment

ALLOWED = ("squeue", "sacct", "scancel", "sinfo", "qstat", "qselect", "qdel")


def run_command(argv: list[str], deadline: float, locale: bool = True) -> dict[str, Any]:
    """Run a command without a shell; how it ended. ``started`` is false where it cannot have done anything."""
    environ = submission_environment(os.environ)
    if locale:
        environ = dict(environ, LC_ALL="C", LANG="C")
    path = shutil.which(argv[0], path=environ.get("PATH"))
    if path is None:
        return {"started": False, "code": 127, "out": "", "err": f"the command {argv[0]} is not on PATH"}
    process = subprocess.Popen(
        [path, *argv[1:]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=deadline)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return {"started": True, "code": None, "out": "", "err": f"no answer within {deadline:g} s"}
    code = process.returncode
    return {"started": True, "code": code, "out": out.decode("utf-8", "replace"), "err": err.decode("utf-8", "replace")}


def scheduler_command(argv: list[str], deadline: float) -> dict[str, Any]:
    """A scheduler's command that asks or cancels; nothing else is run."""
    if not argv or argv[0] not in ALLOWED:
        raise Refused(f"{argv[:1]!r} is not a command that is run for Maple")
    import pwd

    here = {"@UID@": str(os.getuid()), "@USER@": pwd.getpwuid(os.getuid()).pw_name}
    words = []
    for word in argv:
        for mark, value in here.items():
            word = str(word).replace(mark, value)
        words.append(word)
    return run_command(words, deadline)


def send(spec: dict[str, Any], script: str, folder: str) -> dict[str, Any]:
    """Submit a script, byte for byte, through Parsl's provider for this scheduler.

    ``state``: submitted (with ``job_id``), refused (no job exists) or doubt (one may).
    """
    if spec["kind"] == "none":
        return start_here(script, folder)
    try:
        from parsl.launchers.base import Launcher
        from parsl.providers import PBSProProvider, SlurmProvider
    except ImportError as error:
        return {"state": "refused", "code": None, "said": f"Parsl is missing in the Python of the site: {error}"}
    base: Any = {"slurm": SlurmProvider, "pbs": PBSProProvider}[spec["kind"]]
    ended: list[dict[str, Any]] = []

    class Verbatim(Launcher):  # type: ignore[misc]
        def __call__(self, command: str, *shape: Any, **more: Any) -> str:
            return command

    class Provider(base):  # type: ignore[misc]
        def _write_submit_script(self, template: str, script_filename: str, job_name: str, configs: Any) -> None:
            shutil.copyfile(script, script_filename)

        def execute_wait(self, cmd: str, timeout: Any = None) -> tuple[int | None, str, str]:
            if cmd == "sacct -X":  # a submission must not wait for the accounting
                return 1, "", "not asked"
            answer = run_command(shlex.split(cmd), float(spec.get("deadline", 60)), locale=False)
            ended.append(answer)
            return answer["code"], answer["out"], answer["err"]

    wanted = {
        "account": spec.get("account"),
        "clusters": spec.get("clusters"),
        "exclusive": bool(spec.get("exclusive")),
        "nodes_per_block": int(spec["nodes"]),
        "cores_per_node": None,
        "cpus_per_node": spec.get("cpus_per_node") or 1,
        "walltime": spec["walltime"],
        "launcher": Verbatim(),
    }
    known = inspect.signature(base.__init__).parameters  # Parsl's versions differ in what they take
    provider = Provider(**{name: value for name, value in wanted.items() if name in known})
    provider.script_dir = folder
    try:
        job_id = provider.submit(":", int(spec["tasks_per_node"]), job_name=spec["job_name"])
    except Exception as error:
        return _unsent(error, ended)
    finally:
        for name in os.listdir(folder):
            if name.startswith(spec["job_name"] + "."):
                os.unlink(os.path.join(folder, name))
    if not job_id:
        return {"state": "doubt", "said": "the scheduler took the script and named no job"}
    return {"state": "submitted", "job_id": str(job_id)}


def _unsent(error: Exception, ended: list[dict[str, Any]]) -> dict[str, Any]:
    if not ended:
        return {"state": "refused", "code": None, "said": f"Parsl at the site: {type(error).__name__}: {error}"}
    last = ended[-1]
    if not last["started"]:
        return {"state": "refused", "code": None, "said": last["err"]}
    return {"state": "judge", "code": last["code"], "said": last["err"] + "\n" + last["out"]}


def started(pid: int) -> str | None:
    """When a process began, in clock ticks; None when there is none."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return None if fields[0] in "ZX" else fields[19]


def start_here(script: str, folder: str) -> dict[str, Any]:
    """A session of processes that outlives this one; its id names machine, process and start."""
    line = (
        'read -r line <"/proc/$$/stat"; fields=(${line##*) })\n'
        'export MAPLE_LOCAL_ID="local-$$-${fields[19]}"\necho "$MAPLE_LOCAL_ID"\nexec bash "$1" >>"$2" 2>&1'
    )
    # a shell in between, so that this process is not the parent that would have to wait for it
    words = ["bash", "-c", 'setsid bash -c "$@" &', "maple", line, "maple", script, os.path.join(folder, "log.txt")]
    done = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=submission_environment(os.environ, here=True),
        timeout=60,
        check=False,
    )
    job_id = done.stdout.decode().strip()
    if not job_id:
        return {"state": "refused", "code": done.returncode, "said": "no process could be started"}
    return {"state": "submitted", "job_id": job_id, "host": socket.gethostname()}


def local_jobs(job_ids: list[str]) -> dict[str, bool]:
    """Whether each job of :func:`start_here` still runs."""
    found = {}
    for job_id in job_ids:
        parts = job_id.split("-")
        found[job_id] = len(parts) == 3 and parts[1].isdigit() and started(int(parts[1])) == parts[2]
    return found


def cancel_here(job_id: str, grace: int = 30) -> None:
    """End such a job: asked first, by force after ``grace`` seconds."""
    if not local_jobs([job_id])[job_id]:
        return
    pid = int(job_id.split("-")[1])
    os.killpg(pid, signal.SIGTERM)
    line = '(trap "" TERM; sleep "$2"; kill -s KILL -- "-$1") >/dev/null 2>&1 &'
    subprocess.run(["setsid", "bash", "-c", line, "maple", str(pid), str(grace)], stdin=subprocess.DEVNULL, check=False)
