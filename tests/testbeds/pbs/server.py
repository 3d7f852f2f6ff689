"""STAND-IN for qsub, qstat, qselect, qdel and pbsnodes of PBS, as recorded from OpenPBS 23.06. Not a PBS.

Started as ``python server.py COMMAND ARGUMENTS...``; PBS_CONF_FILE names the cluster. Standard library only.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

HERE = Path(__file__).parent
RESOURCES = {
    *("ncpus", "ngpus", "mem", "mpiprocs", "ompthreads", "system", "host", "vnode", "walltime", "place", "select"),
    *("filesystems", "arch", "nodect", "cpu_type", "gpu_type", "job_priority", "singularity_fakeroot"),
}
NOT_IN_CHUNK = {"walltime", "place", "select", "filesystems", "job_priority"}
WALLTIME = re.compile(r"\d+|\d+:\d{1,2}|\d+:\d{2}:\d{2}")
USAGE = "usage: qsub [-a date_time] [-A account_string] [-c interval]"
VALUED = "aAcCejJklmMNopPqrRSuvW"


def conf() -> dict[str, Any]:
    text = Path(os.environ.get("PBS_CONF_FILE", "/etc/pbs.conf")).read_text()
    root = re.search(r"^PBS_HOME=(.*)$", text, re.M)
    assert root
    loaded: dict[str, Any] = json.loads(Path(root[1], "conf.json").read_text())
    return loaded | {"root": root[1]}


@contextmanager
def jobs(cluster: dict[str, Any]) -> Iterator[dict[str, dict[str, Any]]]:
    """All jobs, locked; what is changed inside is kept."""
    file = Path(cluster["root"], "jobs.json")
    with Path(cluster["root"], "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known: dict[str, dict[str, Any]] = json.loads(file.read_text()) if file.exists() else {}
        before = json.dumps(known)
        yield known
        if json.dumps(known) != before:
            fresh = file.with_suffix(".new")
            fresh.write_text(json.dumps(known))
            fresh.replace(file)


def fail(command: str, words: str, code: int) -> NoReturn:
    print(f"{command}: {words}", file=sys.stderr)
    sys.exit(code)


def now() -> str:
    return time.strftime("%a %b %e %H:%M:%S %Y")


def seconds(text: str) -> int:
    total = 0
    for part in text.split(":"):
        total = total * 60 + int(part)
    return total


# -- qsub -------------------------------------------------------------------------------------------------


def options_of(words: list[str], command_line: bool) -> tuple[list[tuple[str, str]], list[str]]:
    found: list[tuple[str, str]] = []
    rest: list[str] = []
    while words:
        word = words.pop(0)
        if not word.startswith("-") or word == "--":
            rest = [word, *words] if command_line else []
            break
        letter, value = word[1:2], word[2:]
        if letter in VALUED and not value:
            if not words:
                fail("qsub", f"option requires an argument -- '{letter}'", 2)
            value = words.pop(0)
        elif letter not in VALUED + "fhIVXz":
            fail("qsub", f"invalid option -- '{letter}'", 2)
        found.append((letter, value))
    return found, rest


def qsub(words: list[str]) -> None:
    cluster = conf()
    given, rest = options_of(words, command_line=True)
    if rest:
        script_file = Path(rest[0])
        if not script_file.is_file():
            fail("qsub", "script file:: No such file or directory", 1)
        script = script_file.read_bytes()
    else:
        script = sys.stdin.buffer.read()
    for line in script.decode(errors="replace").splitlines():
        if line.startswith("#PBS "):
            given += options_of(shlex.split(line[5:]), command_line=False)[0]
        elif line.strip() and not line.startswith("#"):
            break
    single: dict[str, str] = {}
    resources: dict[str, str] = {}
    for letter, value in given:  # the first one counts: those of the command line come first
        if letter == "l":
            for name, amount in split_resources(value):
                resources.setdefault(name, amount)
        else:
            single.setdefault(letter, value)
    name = single.get("N", Path(rest[0]).name if rest else "STDIN")
    if "N" in single and (not re.fullmatch(r"[A-Za-z_+-][!-~]*", name)):
        print(f"qsub: illegal -N value\n{USAGE}", file=sys.stderr)
        sys.exit(2)
    if len(name) > 236:
        fail("qsub", "Job name is too long ", 2)
    queue = single.get("q", cluster["default_queue"])
    check(cluster, queue, resources)
    with jobs(cluster) as known:
        number = int(Path(cluster["root"], "next").read_text())
        Path(cluster["root"], "next").write_text(str(number + 1))
        job_id = f"{number}.{cluster['server']}"
        started = [job_id]
        if "J" in single:
            job_id = f"{number}[].{cluster['server']}"
            started = [f"{number}[{index}].{cluster['server']}" for index in array_of(single["J"])]
        for each in dict.fromkeys((job_id, *started)):
            Path(cluster["root"], "scripts", each).write_bytes(script)
            known[each] = entry(cluster, each, name, queue, single, resources, "h" in single)
            known[each]["Submit_arguments"] = shlex.join(sys.argv[2:])
            if each != job_id:
                index = each.partition("[")[2].partition("]")[0]
                known[each] |= {"array_id": job_id, "array_index": index}
                known[each]["Variable_List"] |= {"PBS_ARRAY_INDEX": index, "PBS_ARRAY_ID": job_id}
            elif "J" in single:
                known[each] |= {"array": "True", "job_state": "B", "max_run_subjobs": most_of(single["J"])}
    with Path(cluster["root"], "mom.log").open("ab") as log:
        for each in started:
            subprocess.Popen(
                [sys.executable, "-E", "-S", str(HERE / "mom.py"), each],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
                cwd="/",
            )
    print(job_id)


def array_of(text: str) -> list[int]:
    """``0-5``, ``0-5%2``: one index is no array to PBS."""
    found = re.fullmatch(r"(\d+)-(\d+)(?::(\d+))?(?:%\d+)?", text)
    if not found or int(found[1]) >= int(found[2]):
        fail("qsub", "illegal -J value", 2)
    return list(range(int(found[1]), int(found[2]) + 1, int(found[3] or 1)))


def most_of(text: str) -> int:
    return int(text.partition("%")[2] or 0)


def split_resources(text: str) -> list[tuple[str, str]]:
    """``walltime=1:00:00,mem=2gb`` or ``select=2:ncpus=4+1:ngpus=1``: commas part resources."""
    found = []
    for part in text.strip().split(","):
        name, _, value = part.strip().partition("=")
        found.append((name, value))
    return found


def chunks_of(select: str) -> list[tuple[int, dict[str, str]]]:
    chunks = []
    for part in select.split("+"):
        head, *rest = part.split(":")
        count = int(head) if head.isdigit() else 1
        rest = rest if head.isdigit() else [head, *rest]
        chunks.append((count, dict(item.partition("=")[::2] for item in rest)))
    return chunks


def check(cluster: dict[str, Any], queue: str, resources: dict[str, str]) -> None:
    if queue not in cluster["queues"]:
        fail("qsub", "Unknown queue", 170)
    for name, value in resources.items():
        if name not in RESOURCES:
            fail("qsub", f"Unknown resource: {name}", 187)
        bad = name == "walltime" and not WALLTIME.fullmatch(value)
        kinds = "free|pack|scatter|vscatter|excl|exclhost|exclusive|shared|group=.*"
        bad |= name == "place" and not all(re.fullmatch(kinds, part) for part in value.split(":"))
        if name == "select":
            for _, chunk in chunks_of(value):
                bad |= bool(set(chunk) & NOT_IN_CHUNK)
                for unknown in set() if bad else set(chunk) - RESOURCES:
                    fail("qsub", f"Unknown resource: {unknown}", 187)
        if bad:
            fail("qsub", f"Illegal attribute or resource value Resource_List.{name}", 166)
    limit = cluster["queues"][queue].get("walltime")
    if limit and seconds(resources.get("walltime", "0")) > seconds(limit):
        fail("qsub", "Job violates queue and/or server resource limits", 188)


def entry(
    cluster: dict[str, Any],
    job_id: str,
    name: str,
    queue: str,
    single: dict[str, str],
    resources: dict[str, str],
    held: bool,
) -> dict[str, Any]:
    user, host, stamp, cwd = pwd.getpwuid(os.getuid()).pw_name, cluster["server"], now(), os.getcwd()
    number = job_id.partition(".")[0]
    select = resources.get("select", "1:ncpus=1")
    chunks = chunks_of(select)
    output = single.get("o", f"{name}.o{number}")
    error = single.get("e", f"{name}.e{number}")
    return {
        "Job_Name": name,
        "Job_Owner": f"{user}@{host}",
        "job_state": "H" if held else "Q",
        "queue": queue,
        "server": host,
        "Checkpoint": "u",
        "ctime": stamp,
        "Error_Path": f"{host}:{Path(cwd, error)}",
        "Hold_Types": "u" if held else "n",
        "Join_Path": single.get("j", "n"),
        "Keep_Files": "n",
        "Mail_Points": single.get("m", "a"),
        "mtime": stamp,
        "Output_Path": f"{host}:{Path(cwd, output)}",
        "Priority": 0,
        "qtime": stamp,
        "Rerunable": "False" if single.get("r") == "n" else "True",
        "Resource_List": {
            "ncpus": sum(count * int(chunk.get("ncpus", 1)) for count, chunk in chunks),
            "nodect": sum(count for count, _ in chunks),
            "place": resources.get("place", cluster["place"]),
            "select": select,
            "walltime": resources.get("walltime", "01:00:00"),
        },
        "substate": 20 if held else 10,
        "Variable_List": {
            "PBS_O_HOME": os.environ.get("HOME", "/"),
            "PBS_O_LANG": os.environ.get("LANG", "C.UTF-8"),
            "PBS_O_PATH": os.environ.get("PATH", ""),
            "PBS_O_SHELL": "/bin/bash",
            "PBS_O_WORKDIR": cwd,
            "PBS_O_SYSTEM": "Linux",
            "PBS_O_QUEUE": queue,
            "PBS_O_HOST": host,
        },
        "etime": stamp,
        "project": "_pbs_project_default",
        "Submit_Host": host,
        **({"Account_Name": single["A"]} if "A" in single else {}),
    }


# -- questions --------------------------------------------------------------------------------------------


def full_id(cluster: dict[str, Any], word: str) -> str:
    return word if "." in word else f"{word}.{cluster['server']}"


def qstat(words: list[str]) -> None:
    cluster = conf()
    flags, ids = "", []
    while words:
        word = words.pop(0)
        if word == "-F":
            if words.pop(0) != "json":
                fail("qstat", "illegal -F value", 2)
            flags += "J"
        elif word.startswith("-"):
            flags += word[1:]
        else:
            ids.append(full_id(cluster, word))
    if "Q" in flags or "B" in flags:
        print(json.dumps(queues(cluster) if "Q" in flags else server(cluster), indent="\t", separators=(",", ":\t")))
        return
    if "x" in flags and not cluster["history"]:
        fail("qstat", "PBS is not configured to maintain job history", 1)
    code = 0
    shown: dict[str, dict[str, Any]] = {}
    with jobs(cluster) as known:
        settle_arrays(known)
        if "t" in flags:
            ids = [part for i in ids for part in (i, *(k for k, j in known.items() if j.get("array_id") == i))]
        for job_id in ids or known:
            job = known.get(job_id)
            past = job is not None and job["job_state"] == "F"
            if job is None or (past and not cluster["history"]):
                code = 153
                print(f"qstat: Unknown Job Id {job_id}", file=sys.stderr)
            elif past and "x" not in flags:
                if ids:
                    code = 35
                    words_ = "Job has finished, use -x or -H to obtain historical job information"
                    print(f"qstat: {job_id} {words_}", file=sys.stderr)
            else:
                shown[job_id] = job
    if "f" in flags and "J" in flags:
        head: dict[str, Any] = {"timestamp": int(time.time()), "pbs_version": "23.06.06"}
        head["pbs_server"] = cluster["server"]
        print(json.dumps(head | ({"Jobs": shown} if shown else {}), indent="\t", separators=(",", ":\t")))
    elif shown:
        print("Job id            Name             User              Time Use S Queue")
        print("----------------  ---------------- ----------------  -------- - -----")
        for job_id, job in shown.items():
            user = job["Job_Owner"].partition("@")[0]
            used = "00:00:00" if "exec_host" in job else "0"
            print(f"{job_id:<17} {job['Job_Name']:<16} {user:<16} {used:>9} {job['job_state']} {job['queue']:<16}")
    sys.exit(code)


def queues(cluster: dict[str, Any]) -> dict[str, Any]:
    """``qstat -Qf -F json``."""
    shown = {}
    for name, limits in cluster["queues"].items():
        shown[name] = {"queue_type": "Execution", "total_jobs": 0, "enabled": "True", "started": "True"}
        shown[name] |= {"resources_max": limits} if limits else {}
    return {"timestamp": int(time.time()), "pbs_version": "23.06.06", "pbs_server": cluster["server"], "Queue": shown}


def server(cluster: dict[str, Any]) -> dict[str, Any]:
    """``qstat -Bf -F json``."""
    mine = {"server_state": "Active", "default_queue": cluster["default_queue"], "max_array_size": 10000}
    head = {"timestamp": int(time.time()), "pbs_version": "23.06.06", "pbs_server": cluster["server"]}
    return head | {"Server": {cluster["server"]: mine}}


def settle_arrays(known: dict[str, dict[str, Any]]) -> None:
    """An array has ended when its elements have."""
    for job_id, job in known.items():
        elements = [part for part in known.values() if part.get("array_id") == job_id]
        if job.get("array") and all(part["job_state"] == "F" for part in elements):
            job |= {"job_state": "F", "Exit_status": max((part.get("Exit_status", 0) for part in elements), default=0)}


def qselect(words: list[str]) -> None:
    cluster = conf()
    name = user = None
    history = False
    while words:
        word = words.pop(0)
        if word == "-x":
            history = True
        elif word == "-N":
            name = words.pop(0)
        elif word == "-u":
            user = words.pop(0)
        else:
            fail("qselect", f"invalid option {word}", 2)
    if history and not cluster["history"]:
        fail("qselect", "PBS is not configured to maintain job history", 1)
    with jobs(cluster) as known:
        settle_arrays(known)
        for job_id, job in known.items():
            if "array_id" in job:
                continue  # qselect names arrays, and their elements only with -t
            mine = user in (None, job["Job_Owner"].partition("@")[0]) and name in (None, job["Job_Name"])
            if mine and (history or job["job_state"] != "F"):
                print(job_id)


def qdel(words: list[str]) -> None:
    cluster, code = conf(), 0
    for word in words:
        job_id = full_id(cluster, word)
        with jobs(cluster) as known:
            job = known.get(job_id)
            if job is None or (job["job_state"] == "F" and not cluster["history"]):
                code = 153
                print(f"qdel: Unknown Job Id {job_id}", file=sys.stderr)
            elif job["job_state"] == "F":
                code = 35
                print(f"qdel: Job has finished {job_id}", file=sys.stderr)
            elif job["job_state"] in "QHW":
                job |= {"job_state": "F", "substate": 91, "comment": f"Job deleted by {job['Job_Owner']}"}
            else:
                Path(cluster["root"], "deleted", job_id).touch()
                os.kill(job["mom_pid"], signal.SIGUSR1)
    sys.exit(code)


def pbsnodes(words: list[str]) -> None:
    cluster = conf()
    nodes = {
        host: {
            "Mom": host,
            "ntype": "PBS",
            "state": "free",
            "resources_available": {"arch": "linux", "host": host} | cluster["node"] | {"vnode": host},
            "resources_assigned": {},
        }
        for host in cluster["hosts"]
    }
    head = {"timestamp": int(time.time()), "pbs_version": "23.06.06", "pbs_server": cluster["server"], "nodes": nodes}
    print(json.dumps(head, indent="\t", separators=(",", ":\t")))


if __name__ == "__main__":
    {"qsub": qsub, "qstat": qstat, "qselect": qselect, "qdel": qdel, "pbsnodes": pbsnodes}[sys.argv[1]](sys.argv[2:])
