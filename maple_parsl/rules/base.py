"""What a rule is, what it looks at, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from maple_parsl.finding import Edit, Severity
from maple_parsl.script.model import Directive, Place, Script

if TYPE_CHECKING:
    from maple_parsl.script.rankmap import LaunchRanks, ScriptRanks
    from maple_parsl.site import Queue, Site

# Class of a fault -> what it is, in one line. The names of the cases; every rule has one of them.
CLASSES: dict[str, str] = {
    "ACCOUNT_PARTITION_QOS": "account, partition or QOS missing, unknown, or not going together",
    "CONTAINER_REF": "container image, engine, binds or GPU option wrong",
    "CONTRADICTION": "two statements contradict each other, or a site fact",
    "CPU_GEOMETRY": "cores, threads and binding do not fit the node or the devices",
    "DIRECTIVE_IGNORED": "a scheduler directive that is not heeded",
    "DIRECTIVE_VAR_EXPANSION": "a shell variable in a directive, where nothing expands it",
    "ENV_NOT_ACTIVATED": "the job does not have the software environment it needs",
    "EXECUTOR_WORKER": "workers of Parsl or Globus Compute started the wrong way",
    "GPU_REQUEST": "GPUs asked for in a way the scheduler or site does not take, or in a wrong number",
    "GPU_VISIBILITY": "processes do not see the devices they use",
    "INJECTION": "text from outside could run as a command",
    "INTEL_TILE_CCL": "Intel tiles, device hierarchy or oneCCL settings wrong",
    "INVALID_VALUE": "a value that cannot be",
    "LAUNCHER_TASK_MISMATCH": "launchers start another number of processes than meant",
    "MEMORY": "host memory asked for is missing, too little or impossible",
    "MISSING_REQUIRED_FIELD": "something every job must state is missing, or a placeholder was left",
    "MPI_PMI": "MPI and the launcher do not find each other",
    "NESTED_STEP": "a job step inside a job step waits for itself",
    "NETWORK_IFACE": "network interface or fabric settings are missing or from another site",
    "NODE_LOCAL_STATE": "files of one node are expected on another",
    "NO_STEP_LAUNCHER": "no launcher takes the program to the other nodes",
    "OFFLINE_NODE": "compute nodes without internet, used as if they had it",
    "PARALLELISM_DIVISIBILITY": "degrees of parallelism or batch sizes do not divide",
    "PORT_COLLISION": "a fixed port that another job may hold",
    "QUEUE_LIMIT": "nodes, GPUs or walltime outside the queue's limits",
    "RANK_EXPANSION_QUOTING": "a rank variable is expanded on the first node instead of in each process",
    "RDZV_ENDPOINT": "processes are told different or unreachable meeting points",
    "SCHED_DIALECT": "options of another scheduler, launcher or site",
    "SCHED_ENV_INHERIT": "scheduler variables of an outer job are inherited",
    "SCHED_ENV_PARSE": "a scheduler variable is read as if it had another form",
    "SCRIPT_FORMAT": "the file itself: shebang, line ends, characters, syntax",
    "SECRET": "a secret stands in the script",
    "SRUN_CPUS_INHERIT": "cores per task given to sbatch only, which srun does not inherit",
    "SSH_HOSTFILE": "ssh between nodes or a host file that cannot work",
}


@dataclass(frozen=True)
class Subject:
    """A script under check, with the site it is for (None: not known, and rules that need one stay silent)."""

    script: Script
    ranks: ScriptRanks
    site: Site | None = None

    @property
    def lines(self) -> tuple[str, ...]:
        """The script's lines; line n is ``lines[n - 1]``."""
        return self.script.rows

    @cached_property
    def directives_by_line(self) -> dict[int, list[Directive]]:
        """Line number -> the options on it."""
        table: dict[int, list[Directive]] = {}
        for directive in self.script.directives:
            table.setdefault(directive.place.line, []).append(directive)
        return table

    @cached_property
    def queue(self) -> Queue | None:
        """The site's queue the script names, or None."""
        for name in ("--partition", "--qos", "-q", "-p"):
            directive = self.script.directive(name)
            if self.site and directive and directive.value:
                found = self.site.queue(directive.value)
                if found:
                    return found
        return None

    @property
    def launches(self) -> tuple[LaunchRanks, ...]:
        return self.ranks.launches


@dataclass(frozen=True)
class Found:
    """One place where a rule does not hold.

    Attributes:
        message: what is wrong here, with the values seen.
        place: where; None for what is missing as a whole.
        evidence: text or fact it rests on. fix: what to do. edits: the change, where it can be said exactly.
        severity: another one than the rule's.
    """

    message: str
    place: Place | None = None
    evidence: str | None = None
    fix: str | None = None
    edits: tuple[Edit, ...] = ()
    severity: Severity | None = None


Check = Callable[[Subject], Iterator[Found]]
"""Yields every place where a rule does not hold."""


@dataclass(frozen=True)
class Rule:
    """One kind of fault.

    Attributes:
        id: stable name, lower case with dashes. fault_class: key of CLASSES.
        title: the fault in a few words. why: what goes wrong, in a sentence or two. source: where that is stated.
        fix: what to do, in general.
        bad, good: whole small scripts; the rule speaks on the one and is silent on the other (tests do both).
        needs_site: the rule compares with a site's facts. site: the site its examples are for.
        check: yields every place where it does not hold.
    """

    id: str
    fault_class: str
    severity: Severity
    title: str
    why: str
    source: str
    fix: str
    bad: str
    good: str
    check: Check = field(repr=False)
    needs_site: bool = False
    site: str | None = None


@dataclass(frozen=True)
class Family:
    """What the rules of a module share: their fault class, often the source, sometimes the site of the examples."""

    fault_class: str
    source: str | None = None
    site: str | None = None

    def rule(
        self,
        id: str,
        severity: Severity,
        title: str,
        why: str,
        fix: str,
        bad: str,
        good: str,
        check: Check,
        *,
        source: str | None = None,
        site: str | None = None,
        needs_site: bool | None = None,
    ) -> Rule:
        """A rule of this family; one whose examples are for a site needs the site's facts unless told otherwise.

        Raises:
            ValueError: neither the family nor the rule says where it is stated.
        """
        source, site = source or self.source, site or self.site
        if source is None:
            raise ValueError(f"rule {id}: no source")
        needs = site is not None if needs_site is None else needs_site
        return Rule(id, self.fault_class, severity, title, why, source, fix, bad, good, check, needs, site)
