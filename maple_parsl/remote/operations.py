"""The operations on runs at a site. Each is short, may be repeated, and is decided by files created exclusively."""

from __future__ import annotations

import base64
import os
import platform
import shutil
import socket
import sys
import time
from typing import Any

from maple_parsl.remote.folders import (
    LARGEST_READ,
    Refused,
    create,
    expanded_root,
    inside,
    keep,
    lay_out,
    missing,
    open_regular,
    read_json,
    run_folder,
)
from maple_parsl.remote.jobs import cancel_here, local_jobs, scheduler_command, send

WATCHED = ("started.json", "exit.json", "metrics.jsonl")
LOGS = ("log.txt", "scheduler.log")
LARGEST_ANSWER = 5 << 20


def where(asked: dict[str, Any]) -> dict[str, Any]:
    """What the site is, the absolute folder for runs, and which files it lacks."""
    root = expanded_root(asked["root"])
    try:
        import parsl

        version = str(parsl.__version__)
    except ImportError:
        version = ""
    return {
        "root": root,
        "host": socket.gethostname(),
        "python": platform.python_version(),
        "executable": sys.executable,
        "parsl": version,
        "commands": [name for name in ("sbatch", "qsub") if shutil.which(name)],
        "missing": missing(root, asked.get("hashes", [])),
        "free": shutil.disk_usage(root).free,
    }


def stage(asked: dict[str, Any]) -> dict[str, Any]:
    """Keep files by content."""
    root = expanded_root(asked["root"])
    keep(root, asked["contents"])
    return {"missing": missing(root, asked.get("hashes", []))}


def _record(kind: str, asked: dict[str, Any]) -> str:
    """The name of a record of one submission."""
    return f"{kind}.{int(asked['number'])}.json"


def submit(asked: dict[str, Any]) -> dict[str, Any]:
    """Fill the run directory and submit its script, once for each number however often this is called."""
    root = asked["root"]
    folder = run_folder(root, asked["run"])
    keep(root, asked.get("contents", {}))
    lay_out(root, folder, asked["files"])
    done = _submitted(folder, asked)
    if done is not None:
        return done
    intent = {
        "job_name": asked["spec"]["job_name"],
        "at": time.time(),
        "host": socket.gethostname(),
        "pid": os.getpid(),
    }
    if not create(os.path.join(folder, _record("intent", asked)), intent):
        held = read_json(os.path.join(folder, _record("intent", asked))) or {}
        if held.get("withdrawn"):
            return {"state": "withdrawn", "said": "this submission was given up before it arrived"}
        return _submitted(folder, asked) or {
            "state": "doubt",
            "said": "the same submission is under way, or was cut short",
        }
    answer = send(asked["spec"], inside(folder, asked["script"]), folder)
    if answer["state"] == "submitted":
        create(os.path.join(folder, _record("submitted", asked)), dict(answer, at=time.time()))
    elif answer["state"] == "refused":
        create(os.path.join(folder, _record("refused", asked)), answer)
    return answer


def _submitted(folder: str, asked: dict[str, Any]) -> dict[str, Any] | None:
    done = read_json(os.path.join(folder, _record("submitted", asked)))
    if done is not None:
        return {"state": "submitted", "job_id": done["job_id"]}
    owner = claim(folder)
    if owner is not None:
        return {"state": "submitted", "job_id": owner}
    refused = read_json(os.path.join(folder, _record("refused", asked)))
    return refused if isinstance(refused, dict) else None


def lookup(asked: dict[str, Any]) -> dict[str, Any]:
    """What the run directory says of a submission."""
    folder = run_folder(asked["root"], asked["run"])
    found = _submitted(folder, asked) or {"state": "unknown"}
    intent = read_json(os.path.join(folder, _record("intent", asked)))
    return dict(found, intent=intent is not None, withdrawn=bool(intent and intent.get("withdrawn")))


def withdraw(asked: dict[str, Any]) -> dict[str, Any]:
    """Give a submission up that has not arrived: should it arrive later, it does nothing."""
    folder = run_folder(asked["root"], asked["run"])
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, _record("intent", asked))
    create(path, {"withdrawn": True, "at": time.time()})
    return {"withdrawn": bool((read_json(path) or {}).get("withdrawn"))}


def claim(folder: str) -> str | None:
    """The job that claimed the run."""
    try:
        return os.readlink(os.path.join(folder, "claim")) or None
    except OSError:
        return None


def status(asked: dict[str, Any]) -> dict[str, Any]:
    """Many runs in one answer: small files that changed, and what the scheduler's commands say."""
    runs, size = {}, 0
    for one in asked["runs"]:
        folder = run_folder(one["root"], one["run"])
        if not os.path.isdir(folder):
            runs[one["run"]] = {"present": False}
            continue
        found: dict[str, Any] = {"present": True, "claim": claim(folder), "files": {}, "log": log_size(folder)}
        for name in _watched(folder):
            stamp = _stamp(os.path.join(folder, name))
            if stamp and stamp != one.get("have", {}).get(name) and size < LARGEST_ANSWER:
                text = _text(inside(folder, name))
                size += len(text)
                found["files"][name] = [stamp, text]
        runs[one["run"]] = found
    commands = [scheduler_command(argv, float(asked.get("limit", 20))) for argv in asked.get("commands", [])]
    return {"now": time.time(), "runs": runs, "commands": commands, "local": local_jobs(asked.get("local", []))}


def _watched(folder: str) -> list[str]:
    names = list(WATCHED)
    attempts = os.path.join(folder, "attempts")
    if os.path.isdir(attempts):
        for attempt in sorted(os.listdir(attempts), key=lambda text: (len(text), text))[-2:]:
            if attempt.isdigit():
                names += [f"attempts/{attempt}/{name}" for name in ("exit.json", "limit", "requeued", "failure.json")]
    return names


def _stamp(path: str) -> str | None:
    try:
        seen = os.stat(path)
    except OSError:
        return None
    return f"{seen.st_mtime_ns}.{seen.st_size}"


def _text(path: str) -> str:
    """The beginning and the end of a file, whole lines."""
    with open_regular(path) as file:
        data = file.read(64 << 10)
        size = file.seek(0, os.SEEK_END)
        if size > len(data):
            file.seek(max(len(data), size - (64 << 10)))
            data = data.rpartition(b"\n")[0] + b"\n" + file.read().partition(b"\n")[2]
    return str(data.decode("utf-8", "replace"))


def log_size(folder: str) -> int:
    """Bytes of the log so far."""
    paths = [os.path.join(folder, name) for name in LOGS]
    sizes = [os.path.getsize(path) for path in paths if os.path.exists(path)]
    return sizes[0] if sizes else 0


def read(asked: dict[str, Any]) -> dict[str, Any]:
    """Part of a file of a run (its log where none is named), from a byte offset on."""
    folder = run_folder(asked["root"], asked["run"])
    if not os.path.isdir(folder):
        raise Refused(f"the run directory {folder} is gone")
    name = asked.get("name")
    if name is None:
        name = next((one for one in LOGS if os.path.exists(os.path.join(folder, one))), LOGS[0])
    path = inside(folder, name)
    offset, limit = int(asked.get("offset", 0)), min(int(asked.get("limit", LARGEST_READ)), LARGEST_READ)
    try:
        with open_regular(path) as file:
            size = file.seek(0, os.SEEK_END)
            start = max(0, size + offset) if offset < 0 else min(offset, size)
            file.seek(start)
            data = file.read(limit)
    except FileNotFoundError:
        return {"start": max(0, offset), "size": 0, "data": "", "exists": False}
    return {"start": start, "size": size, "data": base64.b64encode(data).decode(), "exists": True}


def command(asked: dict[str, Any]) -> dict[str, Any]:
    """A scheduler's command that asks or cancels."""
    return scheduler_command(asked["argv"], float(asked.get("limit", 30)))


def cancel(asked: dict[str, Any]) -> dict[str, Any]:
    """End a job that runs without a scheduler."""
    cancel_here(str(asked["job_id"]))
    return {}


OPERATIONS = {
    "where": where,
    "stage": stage,
    "submit": submit,
    "lookup": lookup,
    "withdraw": withdraw,
    "status": status,
    "read": read,
    "command": command,
    "cancel": cancel,
}
