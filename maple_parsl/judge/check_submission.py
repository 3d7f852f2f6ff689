"""What is wrong with what a script tells the scheduler."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.judge.case import Case
from maple_parsl.judge.sites import JudgedSite, Queue
from maple_parsl.judge.submission import Submission
from maple_parsl.judge.verdict import Fault

_FORBIDDEN = {
    "gpus": ("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket"),
    "mem": ("mem", "mem-per-cpu", "mem-per-gpu"),
}


def submission_faults(case: Case, site: JudgedSite, asked: Submission) -> Iterator[Fault]:
    """Compare the directives with the case and with what the site takes."""
    for words in asked.faults:
        yield Fault(kind="directive-unreadable", message=words)
    if site.scheduler == "slurm" and not asked.shebang:
        yield Fault(kind="script", message="sbatch: this does not look like a batch script: the first line lacks #!")
    yield from _account(case, site, asked)
    yield from _queue(case, site, asked)
    yield from _shape(case, site, asked)
    yield from _walltime(case, site, asked)
    yield from _site_rules(case, site, asked)


def queue_of(site: JudgedSite, asked: Submission) -> str | None:
    """The queue a script names, by the option this site means."""
    return asked.get("-q" if site.scheduler == "pbs" else site.queue_option)


def _account(case: Case, site: JudgedSite, asked: Submission) -> Iterator[Fault]:
    account = asked.get("-A" if site.scheduler == "pbs" else "account")
    if account is None:
        if "account" in site.required:
            yield Fault(kind="account", message="no account: the site takes no job without one")
        elif case.account:
            yield Fault(kind="account", message=f"account {case.account} was asked for and is not there")
        return
    if case.account and account != case.account:
        yield Fault(kind="account", message=f"account {account}, not {case.account}")
    queue = site.queues.get(queue_of(site, asked) or "")
    form = (queue.account_form if queue else None) or site.account_form
    if form and not re.search(form, account):
        yield Fault(kind="account", message=f"account {account} is not of the form the site uses ({form})")


def _queue(case: Case, site: JudgedSite, asked: Submission) -> Iterator[Fault]:
    name = queue_of(site, asked)
    if name is None:
        if "queue" in site.required or case.queue:
            yield Fault(kind="queue", message="no queue is named")
        return
    if case.queue and name != case.queue:
        yield Fault(kind="queue", message=f"queue {name}, not {case.queue}")
    if name not in site.queues:
        yield Fault(kind="queue", message=f"the site has no GPU queue {name} that takes batch scripts")
        return
    queue = site.queues[name]
    nodes = asked.nodes or 1
    if nodes < queue.min or (queue.max is not None and nodes > queue.max):
        yield Fault(kind="queue", message=f"queue {name} takes {queue.min} to {queue.max} nodes, not {nodes}")
    if queue.devices is not None and case.devices_per_node > queue.devices:
        yield Fault(kind="queue", message=f"queue {name} gives {queue.devices} devices per node")
    if queue.gpus is not None and nodes * case.devices_per_node > queue.gpus:
        yield Fault(kind="queue", message=f"queue {name} gives {queue.gpus} GPUs to a user at a time")
    yield from _longest(queue, name, nodes, asked)


def _longest(queue: Queue, name: str, nodes: int, asked: Submission) -> Iterator[Fault]:
    longest = queue.longest(nodes)
    if longest is not None and asked.seconds is not None and asked.seconds > longest * 60:
        yield Fault(kind="walltime", message=f"{asked.seconds // 60} minutes; queue {name} gives {longest}")


def _shape(case: Case, site: JudgedSite, asked: Submission) -> Iterator[Fault]:
    if asked.nodes is None and (case.nodes > 1 or {"nodes", "select"} & set(site.required)):
        yield Fault(kind="node-count", message="the script does not say how many nodes it needs")
    elif (asked.nodes or 1) != case.nodes:
        yield Fault(kind="node-count", message=f"{asked.nodes or 1} nodes are asked for, not {case.nodes}")
    if "tasks" in site.required and asked.slots is None:
        yield Fault(kind="slots", message="the site needs --ntasks-per-node or -n")
    if site.scheduler == "pbs" and (chunk := re.search(r"ncpus=(\d+)", asked.get("select") or "")):
        most = max(kind.cores * kind.threads for kind in site.kinds.values())
        if int(chunk[1]) > most:
            yield Fault(kind="node-count", message=f"no node has {chunk[1]} CPUs")
    if site.gres:
        gpus = asked.gpus
        if gpus is None:
            yield Fault(kind="gpu-request", message="no GPU is asked for, so the job gets none")
        elif gpus < case.devices_per_node:
            yield Fault(kind="gpu-request", message=f"{gpus} GPUs per node for {case.devices_per_node} processes")
        elif gpus > case.devices_per_node:
            yield Fault(kind="gpu-request", message=f"{gpus} GPUs per node are asked for, {case.devices_per_node} used")


def _walltime(case: Case, site: JudgedSite, asked: Submission) -> Iterator[Fault]:
    name = "walltime" if site.scheduler == "pbs" else "time"
    if asked.get(name) is None:
        yield Fault(kind="walltime", message="no walltime")
    elif asked.seconds is None or asked.seconds <= 0:
        yield Fault(kind="walltime", message=f"the walltime {asked.get(name)!r} cannot be read")
    elif case.minutes is not None and asked.seconds != round(case.minutes * 60):
        yield Fault(kind="walltime", message=f"{asked.seconds / 60:g} minutes, not {case.minutes:g}")
    elif asked.seconds < site.min_minutes * 60:
        yield Fault(kind="walltime", message=f"the site takes no job under {site.min_minutes} minutes")


def _site_rules(case: Case, site: JudgedSite, asked: Submission) -> Iterator[Fault]:
    for word in site.forbidden:
        for option in _FORBIDDEN.get(word, (word,)):
            if asked.get(option) is not None:
                yield Fault(kind="directive-forbidden", message=f"--{option} is not taken here")
    if site.constraint is not None:
        stated = asked.get("constraint")
        if stated is None:
            yield Fault(kind="constraint", message="no -C: the job matches no policy")
        elif not re.fullmatch(site.constraint, stated):
            yield Fault(kind="constraint", message=f"constraint {stated!r} is none of GPU nodes")
    if "filesystems" in site.required and not asked.get("filesystems"):
        yield Fault(kind="filesystems", message="no -l filesystems=")
    if site.megabytes_per_core and asked.get("mem") is None and asked.get("exclusive") is None:
        megabytes = site.megabytes_per_core * (asked.number("cpus-per-task") or 1) * (asked.slots or 1)
        if megabytes < 4000 * case.devices_per_node:
            message = f"no --mem: {megabytes} MB of host memory per node by default"
            yield Fault(kind="cores", message=message)
