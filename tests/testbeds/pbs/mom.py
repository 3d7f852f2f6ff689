"""STAND-IN for a PBS scheduler and MOM: runs one job of `server.py` as processes of this machine. Not a PBS."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from server import chunks_of, conf, jobs, now, seconds

Fields = dict[str, Any]


def as_host(host: str) -> list[str]:
    """Words that give a command the name of a pretended host, where that is allowed."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        return []
    return ["unshare", "--uts", "sh", "-c", f'/bin/hostname {host}; exec "$@"', "host"]


def placed(
    cluster: dict[str, Any], job: dict[str, Any], known: dict[str, dict[str, Any]]
) -> list[tuple[str, int]] | str:
    """Host and mpiprocs of each chunk; or why the job waits."""
    need = cluster["node"]
    used = {host: dict.fromkeys(need, 0) for host in cluster["hosts"]}
    busy = set()
    for other in known.values():
        for host, taken, alone in other.get("taken", []):
            busy |= {host} if alone else set()
            for name, amount in taken.items():
                used[host][name] += amount
    place = job["Resource_List"]["place"]
    alone, scatter = "excl" in place, "scatter" in place
    chosen: list[tuple[str, int]] = []
    taken_now: list[list[Any]] = []
    total = len(cluster["hosts"])
    for count, chunk in chunks_of(job["Resource_List"]["select"]):
        wants = {name: int(chunk.get(name, 1 if name == "ncpus" else 0)) for name in ("ncpus", "ngpus")}
        for name, amount in wants.items():
            if amount > need[name] or amount * count > need[name] * total:
                amounts = f"(R: {amount * count} A: {need[name] * total} T: {need[name] * total})"
                return f"Can Never Run: Insufficient amount of resource: {name} {amounts}"
        if scatter and count > total:
            return "Can Never Run: Not enough total nodes available"
        for _ in range(count):
            for host in cluster["hosts"]:
                mine = [entry for entry in taken_now if entry[0] == host]
                if host in busy or (scatter and mine) or (alone and any(used[host].values()) and not mine):
                    continue
                if all(used[host][name] + amount <= need[name] for name, amount in wants.items()):
                    for name, amount in wants.items():
                        used[host][name] += amount
                    taken_now.append([host, wants, alone])
                    chosen.append((host, int(chunk.get("mpiprocs", 1))))
                    break
            else:
                return "Not Running: Insufficient amount of resource: ncpus"
    job["taken"] = taken_now
    return chosen


def environment(
    cluster: dict[str, Any], job_id: str, job: dict[str, Any], nodefile: Path, home: Path
) -> dict[str, str]:
    """What a job finds set: nothing of the submitting shell, no devices."""
    cores = re.search(r"ncpus=(\d+)", job["Resource_List"]["select"])
    return {
        "HOME": str(home),
        "USER": job["Job_Owner"].partition("@")[0],
        "LOGNAME": job["Job_Owner"].partition("@")[0],
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "PATH": cluster["path"],
        "NCPUS": cores[1] if cores else "1",
        "PBS_CONF_FILE": os.environ["PBS_CONF_FILE"],
        "PBS_ENVIRONMENT": "PBS_BATCH",
        "PBS_JOBCOOKIE": secrets.token_hex(16),
        "PBS_JOBDIR": str(home),
        "PBS_JOBID": job_id,
        "PBS_JOBNAME": job["Job_Name"],
        "PBS_MOMPORT": "15003",
        "PBS_NODEFILE": str(nodefile),
        "PBS_NODENUM": "0",
        "PBS_QUEUE": job["queue"],
        "PBS_TASKNUM": "1",
        **job["Variable_List"],
    }


def main(job_id: str) -> None:
    signal.signal(signal.SIGUSR1, lambda *_: None)  # wakes a wait
    cluster = conf()
    root = Path(cluster["root"])
    while True:
        with jobs(cluster) as known:
            job = known[job_id]
            if job["job_state"] == "F":
                return
            if job["job_state"] == "Q" and not crowded(job, known):
                chosen = placed(cluster, job, known)
                if isinstance(chosen, list):
                    hosts = [host for host, _ in chosen]
                    where = "+".join(f"({host}:ncpus=1)" for host in hosts)
                    job |= {"job_state": "R", "substate": 42, "stime": now(), "mtime": now(), "mom_pid": os.getpid()}
                    job |= {"exec_host": "+".join(f"{host}/0" for host in hosts), "exec_vnode": where, "run_count": 1}
                    job["comment"] = f"Job run at {time.strftime('%a %b %d at %H:%M')} on {where}"
                    break
                job["comment"] = chosen
        time.sleep(0.1)
    home, nodefile, spool = root / "home", root / "aux" / job_id, root / "spool" / job_id
    nodefile.write_text("".join(f"{host}\n" * procs for host, procs in chosen))
    script = root / "scripts" / job_id
    script.chmod(0o700)
    deleted = root / "deleted" / job_id
    with spool.with_suffix(".OU").open("wb") as out, spool.with_suffix(".ER").open("wb") as err:
        process = subprocess.Popen(
            [*as_host(hosts[0]), "bash", "-l", "-c", 'exec "$0"', str(script)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out if job["Join_Path"] == "oe" else err,
            env=environment(cluster, job_id, job, nodefile, home),
            cwd=home,
            start_new_session=True,
        )
    end = time.monotonic() + seconds(job["Resource_List"]["walltime"])
    status, words = wait(process, end, deleted)
    for suffix, key in ((".OU", "Output_Path"), (".ER", "Error_Path")):
        if suffix == ".OU" or job["Join_Path"] != "oe":
            with contextlib.suppress(OSError):
                shutil.copy(spool.with_suffix(suffix), job[key].partition(":")[2])
    with jobs(cluster) as known:
        job = known[job_id]
        del job["taken"]
        who = f"terminated by {job['Job_Owner']}" if words == "deleted" else words
        job |= {"job_state": "F", "Exit_status": status, "obittime": now(), "mtime": now(), "Stageout_status": 1}
        job |= {"substate": {"finished": 92, "deleted": 91}.get(words, 93), "comment": f"{job['comment']} and {who}"}


def crowded(job: dict[str, Any], known: dict[str, Any]) -> bool:
    """Whether as many elements of its array run as may (``-J 0-9%4``)."""
    most = known.get(job.get("array_id"), {}).get("max_run_subjobs", 0)
    running = [j for j in known.values() if j.get("array_id") == job.get("array_id") and j["job_state"] == "R"]
    return bool(most) and len(running) >= most


def wait(process: subprocess.Popen[bytes], end: float, deleted: Path) -> tuple[int, str]:
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(0.05)
            finish(process)
            return (256 - code, "failed") if code < 0 else (code, "finished" if code == 0 else "failed")
        if deleted.exists() or time.monotonic() > end:
            late = not deleted.exists()
            every = session(process.pid)
            for pid in every:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            finish(process)
            process.wait()
            return (-29, "exceeded resource walltime") if late else (271, "deleted")


def session(leader: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if stat.read_text().rpartition(")")[2].split()[3] == str(leader):
                found.append(int(stat.parent.name))
    return found


def finish(process: subprocess.Popen[bytes]) -> None:
    for pid in session(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1])
