"""Plan: exactly what will run. The one source of the script, the Parsl objects and the pictures."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from maple_parsl.errors import ConfigurationError
from maple_parsl.finding import Finding
from maple_parsl.request import Request, explain
from maple_parsl.shell import Word
from maple_parsl.walltime import Walltime

if TYPE_CHECKING:
    from maple_parsl.ranks import RankMap

FORMAT = 1
Layer = Literal["stated", "configured", "site", "template", "computed", "maple"]


class Part(BaseModel):
    """Base of the plan's parts: immutable, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Origin(Part):
    """Where a value came from.

    Attributes:
        layer: ``stated`` in the request, ``configured`` by the user's or group's files, a ``site`` or
            ``template`` fact, ``computed`` from others, or fixed by ``maple``.
        why: one sentence. source, checked_on: of a fact.
    """

    layer: Layer
    why: str
    source: str | None = None
    checked_on: date | None = None


class Directive(Part):
    """One scheduler option, as it stands behind ``#SBATCH`` or ``#PBS``."""

    option: str
    origin: Origin


class Step(Part):
    """One shell line run before the launch."""

    line: str
    origin: Origin


class Export(Part):
    """One variable set for every process."""

    name: str
    value: str
    origin: Origin


class Shape(Part):
    """How much of the machine is used.

    Attributes:
        nodes: count. devices: devices used per node. tasks_per_node: processes the launcher starts per node.
        world_size: training processes in all (nodes x devices).
        cpus_per_task: cores (as the scheduler counts them) per launched process; None where unknown.
        whole_node: every device of the node is used.
    """

    nodes: int
    devices: int
    tasks_per_node: int
    world_size: int
    cpus_per_task: int | None
    whole_node: bool


class Placement(Part):
    """Where each local rank of a node runs (the same on every node).

    Attributes:
        device: per local rank, the device's index on the node. cores, numa: its cores, where known.
    """

    device: tuple[int, ...]
    cores: tuple[str | None, ...]
    numa: tuple[int | None, ...]


class Launch(Part):
    """The launch tree: launcher, then the watching wrapper, container, framework launcher, program.

    Attributes:
        mode: what the site's launcher starts: one process per ``device``, per ``node``, or only ``first`` node.
        launcher: the site's launcher with its options; empty on one machine without a scheduler.
        container: prefix that enters the container. framework: the framework's launcher. program: what trains.
        watch_workers: each process a framework's launcher starts is watched too.
        forwards_usr1: the launcher hands SIGUSR1 to its processes.
        rank, local_rank, size, node_rank: variables of the launcher, the first one set counts.
        one_device: each process sees only its own device.
        carries: variables a framework's own launcher must hand to other nodes.
        visible: name and value of the variable that orders the devices, if any.
    """

    mode: Literal["device", "node", "first"]
    dialect: Literal["slurm", "pals", "hydra", "openmpi", "ibrun", "local"]
    launcher: tuple[Word, ...]
    container: tuple[Word, ...] = ()
    framework: tuple[Word, ...] = ()
    program: tuple[Word, ...]
    watch_workers: bool = False
    forwards_usr1: bool = True
    rank: tuple[str, ...]
    local_rank: tuple[str, ...] = ()
    size: tuple[str, ...] = ()
    node_rank: tuple[str, ...] = ()
    one_device: bool = False
    visible: tuple[str, str] | None = None
    hostfile: bool = False
    carries: tuple[str, ...] = ()


class Rendezvous(Part):
    """How the first node is found: a shell expression, and what is done to it."""

    expression: str
    suffix: str | None = None
    origin: Origin


class Preflight(Part):
    """The test of the launch before the program.

    Attributes:
        action: what a finding that the launch cannot train does; ``only``: the program is not started at all.
        program: what stands in the program's place. seconds: after which it is ended.
    """

    action: Literal["stop", "warn", "only"]
    program: tuple[Word, ...]
    seconds: int


class RunPlace(Part):
    """A run's own identity and folders (absolute paths)."""

    run_id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{5,60}$")
    run_dir: str
    work_dir: str


class Array(Part):
    """Several runs as one job of the scheduler; its elements differ in their last arguments only.

    Attributes:
        params: the arguments of each element, by its index from 0. parallel: most that run at a time.
    """

    params: tuple[tuple[str, ...], ...] = Field(min_length=1)
    parallel: int | None = Field(default=None, ge=1)

    @property
    def range(self) -> str | None:
        """The indices as schedulers take them; None for a single element, which is no array to them."""
        if len(self.params) == 1:
            return None
        most = f"%{self.parallel}" if self.parallel and self.parallel < len(self.params) else ""
        return f"0-{len(self.params) - 1}{most}"


class Link(Part):
    """One of several jobs, each of which goes on from the checkpoint of the one before.

    Attributes:
        number, of: its place, from 1. folder: absolute path of what all of them share. chain: their common id.
    """

    number: int
    of: int
    folder: str
    chain: str


class Plan(Part):
    """Everything one launch needs, with where each value came from. JSON round trip: :meth:`to_json`."""

    format: Literal[1] = 1
    version: str
    title: str
    request: Request
    site: str
    site_title: str
    scheduler: Literal["slurm", "pbs", "none"]
    kind: str
    template: str
    model: str | None
    paradigm: str
    backend: str
    torch_device: str
    shebang: str
    job_name: str
    shape: Shape
    walltime: Walltime | None
    account: str | None
    queue: str | None
    node_hours: float | None
    charge: float | None
    directives: tuple[Directive, ...]
    setup: tuple[Step, ...]
    exports: tuple[Export, ...]
    rendezvous: Rendezvous
    launch: Launch
    placement: Placement
    requeue: bool
    lead_seconds: int
    warns_itself: bool
    poll_seconds: int
    miniapp: bool
    preflight: Preflight | None = None
    provenance: dict[str, Origin]
    findings: tuple[Finding, ...] = ()
    place: RunPlace | None = None
    array: Array | None = None
    link: Link | None = None
    resumes: bool = False

    @property
    def script(self) -> str:
        """The batch script, the same text for the same plan."""
        from maple_parsl.script.render import render

        return render(self)

    @property
    def ranks(self) -> RankMap:
        """Who runs where."""
        from maple_parsl.ranks import RankMap

        return RankMap.of(self)

    def at(self, place: RunPlace) -> Plan:
        """The same plan bound to a run's name and folders."""
        return self.model_copy(update={"place": place, "job_name": f"maple-{place.run_id}"})

    def to_json(self, indent: int | None = 2) -> str:
        """The plan as versioned JSON; :meth:`from_json` reads it back equal."""
        return self.model_dump_json(indent=indent, by_alias=True)

    @classmethod
    def from_json(cls, text: str | bytes) -> Plan:
        """Read a plan; raises :class:`ConfigurationError` for another format or a damaged text."""
        try:
            raw: Any = json.loads(text)
        except ValueError as error:
            raise ConfigurationError(f"this is not a plan: {error}") from None
        if not isinstance(raw, dict) or raw.get("format") != FORMAT:
            found = raw.get("format") if isinstance(raw, dict) else type(raw).__name__
            raise ConfigurationError(f"this plan has format {found!r}; this version of Maple reads {FORMAT}")
        try:
            return cls.model_validate(raw)
        except ValidationError as error:
            raise ConfigurationError(f"this plan is damaged: {explain(error)}") from None

    def provider(self, **options: Any) -> Any:
        """The Parsl provider that submits :attr:`script` byte for byte."""
        from maple_parsl.provider import provider

        return provider(self, **options)

    def launcher(self) -> Any:
        """The Parsl launcher, which leaves the command as it is."""
        from maple_parsl.provider import VerbatimLauncher

        return VerbatimLauncher()

    def endpoint_config(self) -> dict[str, Any]:
        """The ``user_endpoint_config`` with which a multi-user endpoint starts blocks of this shape."""
        from maple_parsl.provider import endpoint_config

        return endpoint_config(self)

    def config(self, **options: Any) -> Any:
        """A whole Parsl ``Config`` whose blocks have this plan's shape."""
        from maple_parsl.provider import config

        return config(self, **options)
