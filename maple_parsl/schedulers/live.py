"""Asking the scheduler about a script: read-only, each question with a deadline. Nothing is submitted."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from maple_parsl.errors import SchedulerError
from maple_parsl.finding import Finding
from maple_parsl.schedulers import commands

if TYPE_CHECKING:
    from maple_parsl.script.model import Directive, Script

DEADLINE = 15.0
_ACCOUNT = re.compile(r"account|partition|qos|association|allocation", re.I)
_LIMIT = re.compile(r"limit|time|node count|node configuration|nodes? |cpu count|memory", re.I)
_TROUBLE = re.compile(r"unable to contact|connection|timed out|communication|slurm_persist|not responding", re.I)


def ask_live(
    script: Script, path: Path | None, deadline: float = DEADLINE, environ: Mapping[str, str] | None = None
) -> tuple[list[Finding], list[str]]:
    """Findings of the scheduler itself, and notices on questions that got no answer."""
    parts = {"slurm": (_test_only, _associations, _partitions), "pbs": (_queues,)}.get(script.scheduler, ())
    if not parts:
        return [], [f"{script.name}: --live asks Slurm or PBS, and this script is for neither"]
    found: list[Finding] = []
    notices: list[str] = []
    for part in parts:
        try:
            found += part(script, path, deadline, environ)
        except SchedulerError as error:
            notices.append(f"live: {error}")
    return found, list(dict.fromkeys(notices))


def _test_only(
    script: Script, path: Path | None, deadline: float, environ: Mapping[str, str] | None
) -> Iterator[Finding]:
    if path is None:
        return
    answer = commands.run(["sbatch", "--test-only", str(path.absolute())], deadline=deadline, environ=environ)
    if answer.code == 0:
        return
    if _TROUBLE.search(answer.complaint):
        raise SchedulerError(f"sbatch --test-only: {answer.complaint}")
    kind = "INVALID_VALUE"
    if _ACCOUNT.search(answer.complaint):
        kind = "ACCOUNT_PARTITION_QOS"
    elif _LIMIT.search(answer.complaint):
        kind = "QUEUE_LIMIT"
    message = f"the scheduler would refuse this job: {answer.complaint}"
    yield _finding("live-refused", kind, message, None, "sbatch --test-only", "do what it asks for")


def _associations(
    script: Script, path: Path | None, deadline: float, environ: Mapping[str, str] | None
) -> Iterator[Finding]:
    user = pwd.getpwuid(os.getuid()).pw_name
    argv = ["sacctmgr", "-nP", "show", "assoc", f"user={user}", "format=account,partition,qos"]
    answer = commands.run(argv, deadline=deadline, environ=environ)
    if answer.code != 0:
        raise SchedulerError(f"sacctmgr: {answer.complaint}")
    rows = [row.split("|") for row in answer.out.splitlines() if row.count("|") >= 2]
    if not rows:
        return
    accounts = {row[0].strip().lower(): row[0].strip() for row in rows}
    account, qos = script.directive("--account"), script.directive("--qos")
    stated = (account.value or "").lower() if account else ""
    if account and stated and "$" not in stated and stated not in accounts:
        names = ", ".join(sorted(accounts.values())[:12])
        message = f"you have no account {account.value}"
        yield _finding("live-account", "ACCOUNT_PARTITION_QOS", message, account, "sacctmgr", f"yours are {names}")
        return
    mine = {name for row in rows if not stated or row[0].lower() == stated for name in row[2].lower().split(",")}
    if qos and qos.value and any(mine) and "$" not in qos.value and qos.value.lower() not in mine:
        message = f"the QOS {qos.value} is not one of yours{f' with account {stated}' if stated else ''}"
        fix = f"yours are {', '.join(sorted(name for name in mine if name)[:12])}"
        yield _finding("live-account", "ACCOUNT_PARTITION_QOS", message, qos, "sacctmgr", fix)


def _partitions(
    script: Script, path: Path | None, deadline: float, environ: Mapping[str, str] | None
) -> Iterator[Finding]:
    wanted = script.directive("--partition")
    if wanted is None or not wanted.value or "$" in wanted.value:
        return
    answer = commands.run(["sinfo", "--all", "--noheader", "--format=%R|%a|%l|%D"], deadline=deadline, environ=environ)
    if answer.code != 0:
        raise SchedulerError(f"sinfo: {answer.complaint}")
    known: dict[str, list[list[str]]] = {}
    for row in answer.out.splitlines():
        fields = [field.strip() for field in row.split("|")]
        if len(fields) == 4:
            known.setdefault(fields[0], []).append(fields)
    for name in wanted.value.split(",") if known else ():
        rows = known.get(name)
        if rows is None:
            message, fix = f"there is no partition {name}", f"there are {', '.join(sorted(known)[:20])}"
            yield _finding("live-queue", "ACCOUNT_PARTITION_QOS", message, wanted, "sinfo", fix)
        elif rows[0][1] != "up":
            message = f"the partition {name} is {rows[0][1]} now"
            yield _finding("live-queue", "QUEUE_LIMIT", message, wanted, "sinfo", "wait, or choose another", "warning")
        else:
            yield from _too_large(script, sum(int(r[3]) for r in rows if r[3].isdigit()), name, wanted)


def _too_large(script: Script, nodes: int, name: str, wanted: Directive) -> Iterator[Finding]:
    asked = script.directive("--nodes")
    number = asked.number if asked else None
    if number and nodes and number > nodes:
        message = f"{number} nodes are asked for; the partition {name} has {nodes}"
        yield _finding("live-queue", "QUEUE_LIMIT", message, asked or wanted, "sinfo", f"at most {nodes} nodes")


def _queues(script: Script, path: Path | None, deadline: float, environ: Mapping[str, str] | None) -> Iterator[Finding]:
    wanted = script.directive("queue")
    if wanted is None or not wanted.value or "$" in wanted.value:
        return
    name = wanted.value.partition("@")[0]
    answer = commands.run(["qstat", "-Qf"], deadline=deadline, environ=environ)
    if answer.code != 0:
        raise SchedulerError(f"qstat -Qf: {answer.complaint}")
    queues = {
        found[1]: dict(re.findall(r"^\s+([\w.]+) = (.*)$", found[2], re.M))
        for found in re.finditer(r"^Queue: (\S+)\n(.*?)(?=^Queue: |\Z)", answer.out, re.M | re.S)
    }
    if not queues:
        return
    facts = queues.get(name)
    if facts is None:
        fix = f"there are {', '.join(sorted(queues)[:20])}"
        yield _finding("live-queue", "ACCOUNT_PARTITION_QOS", f"there is no queue {name}", wanted, "qstat -Qf", fix)
        return
    for key, word, level in (("enabled", "takes no jobs", "error"), ("started", "starts no jobs", "warning")):
        if facts.get(key, "True").strip() == "False":
            message = f"the queue {name} {word} now"
            yield _finding("live-queue", "QUEUE_LIMIT", message, wanted, "qstat -Qf", "choose another queue", level)
    yield from _pbs_limits(script, facts, name)


def _pbs_limits(script: Script, facts: dict[str, str], name: str) -> Iterator[Finding]:
    from maple_parsl.script.variables import JobShape

    nodes = JobShape(script).nodes
    for key, sign in (("resources_max.nodect", 1), ("resources_min.nodect", -1)):
        limit = facts.get(key, "").strip()
        if nodes is not None and limit.isdigit() and (nodes - int(limit)) * sign > 0:
            word = "most" if sign > 0 else "least"
            place = script.directive("select") or script.directive("nodes")
            message = f"{nodes} nodes are asked for; the queue {name} takes at {word} {limit}"
            yield _finding("live-queue", "QUEUE_LIMIT", message, place, "qstat -Qf", f"at {word} {limit} nodes")
    time, most = script.directive("walltime"), _seconds(facts.get("resources_max.walltime", ""))
    asked = _seconds(time.value or "") if time else None
    if asked is not None and most is not None and asked > most:
        limit = facts["resources_max.walltime"].strip()
        message = f"the walltime is more than the {limit} the queue {name} allows"
        yield _finding("live-queue", "QUEUE_LIMIT", message, time, "qstat -Qf", f"at most {limit}")


def _seconds(text: str) -> int | None:
    parts = text.strip().split(":")
    if not 1 <= len(parts) <= 3 or not all(part.isascii() and part.isdigit() for part in parts):
        return None
    total = 0
    for part in parts:
        total = total * 60 + int(part)
    return total


def _finding(
    rule: str, kind: str, message: str, at: Directive | None, asked: str, fix: str, severity: str = "error"
) -> Finding:
    return Finding.model_validate(
        {
            "rule": rule,
            "class": kind,
            "severity": severity,
            "message": message,
            "line": at.place.line if at else None,
            "column": (at.value_place or at.place).column if at else None,
            "evidence": f"live: {asked}",
            "fix": fix,
        }
    )
