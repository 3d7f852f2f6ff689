"""Site files, the site this machine is, its scheduler, account and queue."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator, Mapping

from maple_parsl.catalogue import Catalogue
from maple_parsl.doctor.check import Asked, Check, Verdict
from maple_parsl.doctor.places import clock
from maple_parsl.errors import MapleError
from maple_parsl.site import Site

DEADLINE = 10.0
"""Seconds each question to a scheduler may take."""
_COMMANDS = {"slurm": "sbatch", "pbs": "qsub"}
_AS_OF = re.compile(r"Configuration data as of (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)")


def files(catalogue: Catalogue) -> Iterator[Check]:
    """Every site file."""
    faults = [str(fault) for name in catalogue.names() for fault in catalogue.faults(name)]
    for fault in faults:
        yield Check("site files", "fault", fault, "mend the file named, or take it away")
    for notice in catalogue.notices:
        yield Check("site files", "note", str(notice))
    if not faults:
        yield Check("site files", "ok", f"{len(catalogue.names())} sites, all files valid")


def here(catalogue: Catalogue, environ: Mapping[str, str], asked: Asked) -> Iterator[Check]:
    """Which site this is, and whether its scheduler answers and takes jobs of this account and queue."""
    from maple_parsl.here import detect_site

    found = detect_site(catalogue, environ)
    there = [kind for kind, command in _COMMANDS.items() if shutil.which(command, path=environ.get("PATH"))]
    if found.site is None:
        if len(found.candidates) > 1:
            remedy = "set MAPLE_SITE to the right one"
            yield Check("this site", "note", f"could be {' or '.join(found.candidates)}", remedy)
        elif there:
            remedy = "maple sites add NAME describes your own cluster; MAPLE_SITE names a known one"
            yield Check("this site", "note", f"a {there[0]} cluster that Maple does not know", remedy)
        else:
            remedy = "launches on clusters from here: take the script with maple plan --script-only"
            yield Check("this site", "ok", "no cluster: local launches run here", remedy)
        for kind in there:
            yield from _scheduler(kind, environ, "note")  # commands may be installed here for another cluster
        return
    yield Check("this site", "ok", f"{found.site}: {'; '.join(found.evidence)}")
    if asked.site and asked.site != found.site:
        yield Check("this site", "note", f"account and queue of {asked.site} cannot be asked about from here")
        return
    site = catalogue.get(found.site).site
    if site.scheduler.kind not in _COMMANDS:
        return
    answers = list(_scheduler(site.scheduler.kind, environ, "fault"))
    yield from answers
    if not any(check.name == "scheduler" and check.verdict == "fault" for check in answers):
        yield from _usable(site, environ, asked)


def _scheduler(kind: str, environ: Mapping[str, str], serious: Verdict) -> Iterator[Check]:
    from maple_parsl.schedulers import commands

    question = ["sinfo", "-h", "-o", "%P %a"] if kind == "slurm" else ["qstat", "-Q"]
    try:
        answer = commands.run(question, deadline=DEADLINE, environ=environ)
    except MapleError as error:
        yield Check("scheduler", serious, str(error), "load the scheduler's module, or ask again later")
        return
    if answer.code:
        yield Check("scheduler", serious, f"{question[0]}: {answer.complaint}", "jobs cannot be sent now; try later")
        return
    count = len([row for row in answer.out.splitlines() if row.strip() and not row.startswith(("Queue", "---"))])
    yield Check("scheduler", "ok", f"{kind} answers: {count} partitions or queues")
    if kind != "slurm":
        return
    if _asks(["sacct", "-X", "-n", "-S", "now"], environ) is None:
        remedy = "how a job ended is then known from its own exit record only"
        yield Check("accounting", "note", "sacct gives no answer here", remedy)
    before = time.time()
    if (said := _asks(["scontrol", "show", "config"], environ)) and (stamp := _AS_OF.search(said)):
        then = time.mktime(time.strptime(stamp[1], "%Y-%m-%dT%H:%M:%S"))
        # Whole seconds, taken somewhere between question and answer.
        late, early = then + 1 - before, then - time.time()
        yield from clock("clock of the scheduler", early if early > 0 else late if late < 0 else 0.0)


def _asks(argv: list[str], environ: Mapping[str, str]) -> str | None:
    from maple_parsl.schedulers import commands

    try:
        answer = commands.run(argv, deadline=DEADLINE, environ=environ)
    except MapleError:
        return None
    return answer.out if answer.code == 0 else None


def _usable(site: Site, environ: Mapping[str, str], asked: Asked) -> Iterator[Check]:
    """Account and queue, as named or as the site's file of this person says, put to the scheduler."""
    from maple_parsl.schedulers.live import ask_live
    from maple_parsl.script import read

    account, queue = asked.account or site.defaults.account, asked.queue or site.defaults.queue
    if account is None and site.scheduler.account == "required":
        remedy = "state --account, or account under [defaults] in your file of the site"
        yield Check("account", "note", "none is configured, and this site wants one", f"{remedy}{_mine(site, environ)}")
    lines = _directives(site, account, queue)
    if not lines:
        return
    findings, notices = ask_live(
        read("#!/bin/bash\n" + "\n".join(lines) + "\n", name="doctor"), None, DEADLINE, environ
    )
    what = f"account {account}, queue {queue}" if account and queue else f"account {account or ''}queue {queue or ''}"
    for found in findings:
        verdict: Verdict = "fault" if found.severity == "error" else "note"
        yield Check("account and queue", verdict, found.message, found.fix or "")
    for notice in notices:
        yield Check("account and queue", "note", notice, "whether they are usable is not known; ask again later")
    if not findings and not notices:
        yield Check("account and queue", "ok", f"the scheduler has no objection to {what.replace('  ', ' ')}")


def _directives(site: Site, account: str | None, queue: str | None) -> list[str]:
    if site.scheduler.kind == "pbs":
        return [f"#PBS -A {account}"] * bool(account) + [f"#PBS -q {queue}"] * bool(queue)
    entry = next((found for found in site.queues.entry if found.name == queue), None) if site.queues else None
    partition, qos = (entry.partition, entry.qos) if entry else (None, None)
    if queue and site.scheduler.queue_option == "qos":
        qos = qos or queue
    elif queue:
        partition = partition or queue
    stated = {"account": account, "partition": partition, "qos": qos}
    return [f"#SBATCH --{name}={value}" for name, value in stated.items() if value]


def _mine(site: Site, environ: Mapping[str, str]) -> str:
    """The accounts that Slurm has for this user, as a clause."""
    import getpass

    if site.scheduler.kind != "slurm":
        return ""
    said = _asks(["sacctmgr", "-nP", "show", "assoc", f"user={getpass.getuser()}", "format=account"], environ)
    names = sorted(set((said or "").split()))
    return f"; yours are {', '.join(names[:12])}" if names else ""
