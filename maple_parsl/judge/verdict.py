"""Verdict: what is wrong with a script, by kind, or nothing."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

FaultKind = Literal[
    "account",  # missing, another one, or not of the site's form
    "affinity",  # a rank's cores are not those next to its device
    "arguments",  # the program's arguments are not those asked for
    "backend",
    "constraint",
    "cores",  # ranks share cores, or have fewer than they need
    "device",  # two ranks on one device, or a rank without one
    "directive-forbidden",
    "directive-unreadable",
    "environment",  # a variable that was asked for, or that the site needs
    "filesystems",
    "gpu-request",
    "launcher",  # a launcher refused, or its ranks never met
    "local-rank",
    "node-count",  # nodes asked for, or used
    "process-count",  # processes per node
    "program",  # not started at all, another one, or from another folder
    "queue",
    "rank",  # not 0 to world size - 1, once each
    "rank-order",  # not node by node
    "rendezvous-address",
    "rendezvous-port",
    "script",  # the script itself ended with an error, or is no script
    "slots",  # tasks per node the scheduler must be told
    "software",
    "submission-in-job",
    "timeout",
    "walltime",
    "world-size",
]


class Fault(BaseModel):
    """One thing that is not as the case demands."""

    model_config = ConfigDict(frozen=True)

    kind: FaultKind
    message: str


class Verdict(BaseModel):
    """The judgement of one script.

    Attributes:
        faults: everything that is wrong, most telling first. processes: how many the script started of its program.
        record: what happened, for a person to look at.
    """

    faults: tuple[Fault, ...]
    processes: int
    record: dict[str, Any] = {}

    @property
    def good(self) -> bool:
        return not self.faults

    @property
    def kinds(self) -> set[str]:
        return {fault.kind for fault in self.faults}
