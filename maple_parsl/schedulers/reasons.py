"""What a scheduler's reason for a waiting or ended job means, and whether waiting can help."""

from __future__ import annotations

import re
from typing import NamedTuple


class Reason(NamedTuple):
    """A reason in plain words; ``never``: the job cannot start as it is."""

    text: str
    never: bool = False


_WAITS = "It starts when {}."
SLURM: dict[str, Reason] = {
    "None": Reason("Slurm has not looked at the job yet."),
    "Resources": Reason("It is next in line and waits for nodes to become free."),
    "Priority": Reason("Other jobs are in front of it in the queue."),
    "BeginTime": Reason("It may not start before its begin time (a requeued job waits about two minutes)."),
    "Dependency": Reason("It waits for another job that it depends on."),
    "DependencyNeverSatisfied": Reason("The job it depends on ended in a way it must not; cancel it.", never=True),
    "JobHeldUser": Reason("Its owner holds it; release it with scontrol release."),
    "JobHeldAdmin": Reason("An administrator holds it; ask the site."),
    "JobHoldMaxRequeue": Reason("It failed to start too often and is held; look at the nodes, then scontrol release."),
    "JobLaunchFailure": Reason("The job could not be started, often a file system that is not there; it is held."),
    "ReqNodeNotAvail": Reason(
        "A node it needs is not available: down, drained, or reserved for a maintenance that its walltime reaches"
        " into. A shorter walltime may start before the maintenance."
    ),
    "Reservation": Reason("It waits for its reservation to begin."),
    "ReservationDeleted": Reason("The reservation it names is gone.", never=True),
    "PartitionTimeLimit": Reason("Its walltime is longer than this partition allows.", never=True),
    "PartitionNodeLimit": Reason("It asks for more nodes than this partition allows, or fewer.", never=True),
    "PartitionConfig": Reason("It asks for something this partition cannot give.", never=True),
    "PartitionDown": Reason("The partition is closed for now; jobs in it start when it opens."),
    "PartitionInactive": Reason("The partition takes no jobs.", never=True),
    "AccountNotAllowed": Reason("This account may not use this partition.", never=True),
    "QOSNotAllowed": Reason("This quality of service may not be used here.", never=True),
    "InvalidAccount": Reason("The account is not valid any more.", never=True),
    "InvalidQOS": Reason("The quality of service is not valid.", never=True),
    "BadConstraints": Reason("No node has what it asks for.", never=True),
    "Licenses": Reason("It waits for a licence (often a file system) to be available."),
    "NodeDown": Reason("A node it needs is down."),
    "NonZeroExitCode": Reason("The batch script ended with an exit code that is not zero."),
    "TimeLimit": Reason("It reached its walltime."),
    "RaisedSignal": Reason("A signal ended it."),
    "SystemFailure": Reason("Slurm, a file system or the network failed."),
    "OutOfMemory": Reason("It used more memory than it had."),
    "Cleaning": Reason("An earlier start of the job is still being cleaned up."),
    "Prolog": Reason("The site prepares its nodes."),
    "JobArrayTaskLimit": Reason("As many elements of its array run as it allows at once."),
    "DeadLine": Reason("It can no longer meet its deadline.", never=True),
    "FedJobLock": Reason("It waits for another cluster of the federation."),
    "BurstBufferResources": Reason("It waits for space in the burst buffer."),
    "FrontEndDown": Reason("No front-end node is available."),
    "InactiveLimit": Reason("It was idle too long."),
    "NoReason": Reason("Slurm gives no reason."),
}
_TRES = {
    "Wall": "walltime",
    "Gres": "GPUs or other devices",
    "GRES": "GPUs or other devices",
    "Cpu": "cores",
    "CPU": "cores",
    "Node": "nodes",
    "Mem": "memory",
    "Job": "jobs",
    "Submit": "submitted jobs",
    "Lic": "licences",
    "License": "licences",
    "Billing": "charged units",
    "Energy": "energy",
    "BB": "burst buffer",
}


def slurm(reason: str) -> Reason | None:
    """A Slurm reason code (``squeue %r``) in plain words; None for an unknown one or none."""
    code = reason.strip("() ").split(",")[0]
    if not code or code == "N/A":
        return None
    if code in SLURM:
        return SLURM[code]
    for known in ("ReqNodeNotAvail", "DependencyNeverSatisfied", "BadConstraints", "JobHoldMaxRequeue"):
        if code.startswith(known):
            return SLURM[known]
    return _slurm_limit(code)


def _slurm_limit(code: str) -> Reason | None:
    """The many codes of limits: ``QOSMaxJobsPerUserLimit``, ``AssocGrpCPUMinutesLimit``, ``QOSMinGRES`` …"""
    if not code.startswith(("QOS", "Assoc", "MaxMemPerLimit", "MaxCpuPerAccount")):
        return None
    owner = "the quality of service" if code.startswith("QOS") else "the account"
    if "Minutes" in code or "RunTime" in code or code in ("QOSUsageThreshold",):
        if "PerJob" in code:
            return Reason(f"Its size times its walltime is more than {owner} allows for one job.", never=True)
        return Reason(
            f"The time granted to {owner} is used up or bound by running jobs. If the grant is spent the job never"
            " starts: look at the balance."
        )
    what = next((text for name, text in _TRES.items() if name in code), "resources")
    if "Min" in code:
        return Reason(f"It asks for less {what} than {owner} demands.", never=True)
    if "PerJob" in code or "PerNode" in code or code.endswith(("MaxWallDurationPerJobLimit", "TimeLimit")):
        return Reason(f"It asks for more {what} than {owner} allows for one job.", never=True)
    who = "you have" if "PerUser" in code else f"{owner} has"
    return Reason(f"As much as is allowed at once ({what}) is in use: {_WAITS.format(f'{who} less running')}")


_NEED = re.compile(r"Insufficient amount of (?:server |queue )?resource:? ?(\w+)(?: \(R: (\S+) A: (\S+) T: (\S+)\))?")


def pbs(comment: str) -> Reason | None:
    """A PBS comment in plain words; None for an unknown one or none."""
    text = comment.strip()
    low = text.lower()
    if low.startswith("can never run") or "never be able to run" in low:
        need = _NEED.search(text)
        if need and need[2]:
            return Reason(f"It asks for {need[2]} {need[1]}, and there are {need[4]} in all; cancel it.", never=True)
        return Reason(f"PBS says it can never run: {text.partition(':')[2].strip() or text}.", never=True)
    if need := _NEED.search(text):
        return Reason(f"It waits for {need[1]} to become free.")
    for part, meaning in _PBS.items():
        if part in low:
            return meaning
    return None


_PBS: dict[str, Reason] = {
    "queue not started": Reason("The queue is stopped for now; jobs in it start when it is started again."),
    "would conflict with reservation or top job": Reason("It would delay a reservation or a job in front of it."),
    "dedicated time": Reason("It would run into time set aside for maintenance; a shorter walltime may start before."),
    "prime": Reason("The queue opens at another time of the day."),
    "job would exceed": Reason("It asks for more than a limit allows.", never=False),
    "limit reached": Reason("As many jobs as are allowed at once are running."),
    "limit on": Reason("A limit on jobs running at once is reached."),
    "has reached": Reason("As many jobs as are allowed at once are running."),
    "too many failed attempts": Reason("It failed to start too often and is held; ask the site."),
    "job held": Reason("It is held."),
    "host set has too few free resources": Reason("It waits for nodes close to each other to become free."),
    "no available resources on nodes": Reason("It waits for nodes to become free."),
    "not enough free nodes available": Reason("It waits for nodes to become free."),
    "not enough total nodes available": Reason("It asks for more nodes than there are.", never=True),
    "insufficient amount": Reason("It waits for resources to become free."),
    "strict ordering": Reason("Other jobs are in front of it in the queue."),
}
