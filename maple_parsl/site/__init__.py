"""Site: what a cluster is, as facts with their source and the date they were checked.

An absent fact is unknown: it is never guessed, and code that needs it says so.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from maple_parsl.site.base import Amount, Facts, Line, Model, Name, Names, Variable
from maple_parsl.site.batch import Band, Directives, Queue, Queues, Scheduler
from maple_parsl.site.launching import Environment, Launcher, Rendezvous
from maple_parsl.site.nodes import Device, NodeKind
from maple_parsl.walltime import Walltime

__all__ = [
    "Band",
    "Defaults",
    "Detect",
    "Device",
    "Directives",
    "Environment",
    "Facts",
    "Launcher",
    "Line",
    "Model",
    "Name",
    "NodeKind",
    "Queue",
    "Queues",
    "Remote",
    "Rendezvous",
    "Scheduler",
    "Site",
    "Storage",
    "Variable",
]


class Storage(Facts):
    """File systems as they concern a run.

    Attributes:
        node_local: path prefixes that other nodes do not see.
        shared: where runs belong; variables such as ``$SCRATCH`` allowed.
        purge_days: files unused for so long may be deleted.
    """

    node_local: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    purge_days: int | None = None


class Detect(Facts):
    """How to tell that a process is on this site: by what the site really sets, never by a host-name prefix.

    Attributes:
        env: variables and their exact values (compared without case).
        env_contains: variables and a part of their value.
        slurm_cluster: Slurm's ClusterName. pbs_server: part of the PBS server's name.
        domain: the end of the fully qualified host name.
    """

    env: dict[Variable, str] = {}
    env_contains: dict[Variable, str] = {}
    slurm_cluster: str | None = None
    pbs_server: str | None = None
    domain: tuple[str, ...] = ()


class Remote(Facts):
    """How the site is reached from elsewhere (addresses only; nothing secret).

    Attributes:
        python: the interpreter at the other end of ssh, with Parsl.
        inference_endpoint, inference_model: where agents may be answered, and the weights there (id or path).
        inference_node_hours: what a block that such a call starts may cost; without it none is started.
    """

    ssh: str | None = None
    globus_endpoint: str | None = None
    globus_required: tuple[str, ...] = ()
    python: str | None = None
    inference_endpoint: str | None = None
    inference_model: str | None = None
    inference_node_hours: Amount | None = None
    note_for_users: str | None = None


class Defaults(Model):
    """What a person or group fixed for their own use of a site; never part of the shipped catalogue.

    Attributes:
        account, queue, walltime: used when a request names none.
        run_root: folder that holds run directories, on a file system all nodes see.
        max_node_hours: refuse jobs above; ask_above_node_hours: ask before jobs above.
    """

    account: Names | None = None
    queue: Names | None = None
    walltime: Walltime | None = None
    run_root: str | None = None
    max_node_hours: Amount | None = None
    ask_above_node_hours: Amount | None = None


class Site(Model):
    """A cluster. See the module's parts; the file ``providers/<name>.toml`` has this shape."""

    format: Literal[1] = 1
    name: Name
    title: str
    aliases: tuple[str, ...] = ()
    organization: str | None = None
    status: Literal["production", "ending", "restricted", "retired"] = "production"
    status_note: str | None = None
    documentation: str | None = None
    executed_on: str | None = None
    scheduler: Scheduler
    directives: Directives
    kinds: dict[Name, NodeKind] = Field(min_length=1)
    launchers: dict[Name, Launcher] = Field(min_length=1)
    environments: dict[Name, Environment] = Field(min_length=1)
    rendezvous: Rendezvous
    queues: Queues | None = None
    storage: Storage | None = None
    detect: Detect | None = None
    remote: Remote | None = None
    defaults: Defaults = Defaults()

    @model_validator(mode="after")
    def _names_resolve(self) -> Site:
        for name, kind in self.kinds.items():
            if kind.launcher not in self.launchers:
                raise ValueError(f"kinds.{name}.launcher names {kind.launcher!r}, which is not in launchers")
            if kind.environment not in self.environments:
                raise ValueError(f"kinds.{name}.environment names {kind.environment!r}, not in environments")
        for queue in self.queues.entry if self.queues else ():
            for kind_name in queue.kinds:
                if kind_name not in self.kinds:
                    raise ValueError(f"queue {queue.name} names kind {kind_name!r}, which is not in kinds")
        return self

    def queue(self, name: str) -> Queue | None:
        """The queue of that name, or None."""
        entries = self.queues.entry if self.queues else ()
        return next((queue for queue in entries if queue.name.lower() == name.lower()), None)
