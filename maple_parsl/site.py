"""Site: what a cluster is, as facts with their source and the date they were checked.

An absent fact is unknown: it is never guessed, and code that needs it says so.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from maple_parsl.walltime import Walltime

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$")]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


def _one_line(text: str) -> str:
    if any(character in text for character in "\n\r\0"):
        raise ValueError("must be one line")
    return text


Line = Annotated[str, AfterValidator(_one_line)]


class Model(BaseModel):
    """Base of the site's parts: immutable, and a misspelt key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Facts(Model):
    """A group of facts checked together.

    Attributes:
        source: where they are stated (document and page, or the command that printed them).
        checked_on: the day someone last compared them with the source.
        note: what a reader should know; parts that are inferred are named here.
    """

    source: str
    checked_on: date
    note: str | None = None


class Scheduler(Facts):
    """The batch system and what it asks of every job.

    Attributes:
        kind: batch system; ``none`` runs on this machine; ``lsf`` only describes retired sites.
        shebang: first line of the script; PBS sites with modules need a login shell.
        account: whether a job must name an account (project, allocation).
        account_hint: the form of account names, shown when one is missing; never appended silently.
        account_pattern: regular expression the account must match, where the site enforces one.
        queue_option: what the queue's name is called here: a partition, a QOS or a PBS queue.
        min_walltime, default_walltime: shortest accepted; what a job gets that states none.
        max_array: most elements in one job array.
        poll_seconds: shortest interval between status queries, seconds.
        requeue: whether a job may be requeued by its owner. Absent: unknown.
        signal: whether the scheduler can signal the script before the limit (Slurm's --signal).
        limits_command: prints the live limits.
        clusters: value for Slurm's --clusters, where several clusters share a login node.
    """

    kind: Literal["slurm", "pbs", "lsf", "none"]
    version: str | None = None
    shebang: Literal["#!/bin/bash", "#!/bin/bash -l"] = "#!/bin/bash"
    account: Literal["required", "optional"] = "required"
    account_hint: str | None = None
    account_pattern: str | None = None
    queue_option: Literal["partition", "qos", "queue"] | None = None
    min_walltime: Walltime | None = None
    default_walltime: Walltime | None = None
    max_array: int | None = None
    poll_seconds: int = 60
    requeue: bool | None = None
    signal: bool = False
    limits_command: str | None = None
    clusters: str | None = None


class Directives(Facts):
    """How a job's resources are written at this site.

    Attributes:
        always: directives added to every script, without the ``#SBATCH``/``#PBS`` prefix.
        gpu_request: how GPUs are asked for. ``none``: whole nodes, never written. ``gpus-per-node``,
            ``gpus`` (the job's total), ``gres`` (Slurm), ``select-ngpus`` (in the PBS chunk).
        tasks: how tasks are written: ``ntasks-per-node``, ``ntasks`` (the total), or ``none``.
        cpus_per_task: whether --cpus-per-task is written (Slurm).
        memory: ``forbidden``, ``unneeded`` (whole nodes), ``whole-node`` (``--mem=0`` unless stated), or
            ``required`` (the user must state it or the node kind gives it).
        exclusive: ask for whole nodes explicitly (Slurm ``--exclusive``), where nodes are shared by default.
        forbidden: option names the site rejects, such as ``--gres``.
        forbidden_note: what happens with a forbidden option.
    """

    always: tuple[Line, ...] = ()
    gpu_request: Literal["none", "gpus-per-node", "gpus", "gres", "select-ngpus"]
    tasks: Literal["ntasks-per-node", "ntasks", "none"] = "ntasks-per-node"
    cpus_per_task: bool = True
    memory: Literal["forbidden", "unneeded", "whole-node", "required"] = "unneeded"
    exclusive: bool = False
    forbidden: tuple[str, ...] = ()
    forbidden_note: str | None = None


class Device(Model):
    """One device as the framework sees it, and the cores closest to it.

    Attributes:
        cores: CPU list such as ``24-31,56-63``, in the operating system's numbering.
        numa: NUMA node of those cores.
    """

    cores: str = Field(pattern=r"^\d+(-\d+)?(,\d+(-\d+)?)*$")
    numa: int | None = None
    nic: str | None = None


class Launcher(Facts):
    """The command that starts processes on the nodes of an allocation, and what each process learns from it.

    Attributes:
        command: the executable (``srun``, ``mpiexec``, ``mpirun``, ``ibrun``).
        dialect: whose options it takes. ``local`` starts the processes itself, on this machine; ``jsrun``
            only describes retired sites.
        flags: options always given.
        per_device_flags: further options when one process per device is started.
        per_node_flags: further options when one process per node is started.
        per_node_command: another command (with its dialect) for one process per node, where the site says so.
        rank, local_rank, world_size, node_rank: environment variables, the first one set is used. An empty
            ``local_rank`` means the launcher sets none and it is derived from the rank.
        one_device_visible: each process sees only its own device, as device 0 (``--gpus-per-task=1``).
        preferred_style: how PyTorch programs start here by default, as the site's documents have it.
    """

    command: str
    dialect: Literal["slurm", "pals", "hydra", "openmpi", "ibrun", "local", "jsrun"]
    flags: tuple[Line, ...] = ()
    per_device_flags: tuple[Line, ...] = ()
    per_node_flags: tuple[Line, ...] = ()
    per_node_command: str | None = None
    per_node_dialect: Literal["slurm", "pals", "hydra", "openmpi", "ibrun"] | None = None
    rank: tuple[Variable, ...]
    local_rank: tuple[Variable, ...] = ()
    world_size: tuple[Variable, ...] = ()
    node_rank: tuple[Variable, ...] = ()
    one_device_visible: bool = False
    preferred_style: Literal["per-node", "per-device"] = "per-node"


class Rendezvous(Facts):
    """How the processes of all nodes find each other.

    Attributes:
        host: how the first node is named. ``first-host``: first of the scheduler's host list.
            ``batch-host``: the host the batch script runs on.
        suffix: replaces the domain of the short host name, where only one network is reachable by name.
        address: take the address of this interface on that host rather than its name (``hostname -i`` style
            when ``any``).
        interface: value for NCCL_SOCKET_IFNAME on multi-node jobs; NCCL takes a prefix such as ``hsn``.
        gloo_interface: value for GLOO_SOCKET_IFNAME, which needs exact names. Absent: unknown.
    """

    host: Literal["first-host", "batch-host"] = "first-host"
    suffix: str | None = None
    address: Literal["name", "any"] = "name"
    interface: str | None = None
    gloo_interface: str | None = None


class Environment(Facts):
    """What the job's shell needs before the launcher starts.

    Attributes:
        base: lines every job needs (modules of the site).
        framework: lines that bring the site's own PyTorch; used when the request names no environment.
        framework_note: what to do where the site offers none.
        conda: lines that bring the ``conda`` command, for a user's own conda environment.
        exports: variables always set.
        network: variables set on jobs of more than one node (NCCL, RCCL, oneCCL, libfabric).
        network_prepend: paths put in front of LD_LIBRARY_PATH on jobs of more than one node.
        proxy: variables set so that nodes without a route reach the outside; both cases are exported.
        outbound: whether compute nodes reach the internet. Absent: unknown.
        container_engine, container_setup: how containers run here.
        container_flags: options added to the engine, such as ``--nv``.
    """

    base: tuple[Line, ...] = ()
    framework: tuple[Line, ...] = ()
    framework_note: str | None = None
    conda: tuple[Line, ...] = ()
    exports: dict[Variable, str] = {}
    network: dict[Variable, str] = {}
    network_prepend: tuple[str, ...] = ()
    proxy: dict[Variable, str] = {}
    outbound: Literal["direct", "proxy", "none"] | None = None
    container_engine: Literal["apptainer", "singularity", "shifter", "podman-hpc"] | None = None
    container_setup: tuple[Line, ...] = ()
    container_flags: tuple[Line, ...] = ()


class NodeKind(Facts):
    """One kind of node: its devices, cores, and how a process is placed on them.

    Attributes:
        gpus: physical GPUs per node (0 on CPU nodes).
        devices: devices a framework sees per node: tiles or dies where they are separate devices.
        device_memory_gib: memory per device, GiB.
        composed: GPUs are put together per job, so their number must be stated and has no known limit.
        vendor, backend, torch_device: whose devices, the collective backend and ``torch.device`` type.
        cores: usable physical cores per node; ``hw_threads`` counts hardware threads.
        memory_gib: host memory per node, GiB.
        device_map: the devices in index order, each with its closest cores. Absent: unknown.
        visible_order: device order exported job-wide so that local rank i gets the device near its cores.
        cpu_bind: binding of one process per device, in the launcher's own words (overrides device_map).
        cpus_per_device: cores (or hardware threads, as the site counts them) given to each device.
        constraint: Slurm feature expression of this kind (``-C``).
        gres_type: type in a GPU request, such as ``h100-80``.
        select: PBS chunk resources after the count, such as ``ncpus=64:mpiprocs=4:ngpus=4``;
            ``{devices}`` and ``{cores}`` are replaced by what the plan uses per node.
        select_unit: what one chunk counts.
        launcher, environment: names of the site's launcher and environment for this kind.
        exports: variables every process on this kind needs (device hierarchy, visibility).
        composite_exports: variables that make a physical GPU one device, where it is normally several.
    """

    title: str
    nodes: int | None = None
    arch: Literal["x86_64", "aarch64", "ppc64le"] | None = None
    vendor: Literal["nvidia", "amd", "intel", "none"]
    gpus: int = Field(ge=0)
    devices: int = Field(ge=1)
    composed: bool = False
    device_memory_gib: float | None = None
    backend: Literal["nccl", "xccl", "gloo"]
    torch_device: Literal["cuda", "xpu", "cpu"]
    cpu: str | None = None
    sockets: int | None = None
    cores: int | None = None
    hw_threads: int | None = None
    numa_nodes: int | None = None
    memory_gib: float | None = None
    nic: str | None = None
    device_map: tuple[Device, ...] = ()
    visible_order: tuple[int, ...] = ()
    cpu_bind: Line | None = None
    cpus_per_device: int | None = None
    constraint: str | None = None
    gres_type: str | None = None
    select: str | None = None
    select_unit: Literal["node", "gpu"] = "node"
    launcher: Name = "default"
    environment: Name = "default"
    exports: dict[Variable, str] = {}
    composite_exports: dict[Variable, str] = {}

    @model_validator(mode="after")
    def _consistent(self) -> NodeKind:
        if self.device_map and len(self.device_map) != self.devices:
            raise ValueError(f"device_map has {len(self.device_map)} entries for {self.devices} devices")
        if self.visible_order and sorted(self.visible_order) != list(range(self.devices)):
            raise ValueError("visible_order must name each device once")
        return self


class Band(Model):
    """Limits that hold for a range of node counts (routing queues, bins)."""

    min_nodes: int = 1
    max_nodes: int
    max_walltime: Walltime
    via: str | None = None


class Queue(Model):
    """A queue, partition or QOS as the user names it.

    Attributes:
        kinds: the node kinds it offers, its default first.
        min_nodes, max_nodes, max_walltime: per job. Absent: unknown (or, for max_nodes, no cap: see note).
        bands: limits by node count, where they differ; they win over max_walltime.
        partition, qos: what is really written, where it differs from the name.
        max_gpus: devices of one job in total; ``max_gpus_per_node`` per node.
        shared: nodes are shared with other jobs, so a job may ask for a part of one.
        exclusive: whole nodes are given and charged, whatever is asked.
        batch: scripts may be submitted (false: interactive only).
        open: anyone may use it (false: by request).
        default: what a job gets that names no queue.
        charge: node-hours charged per node-hour used. Absent: unknown.
        directives: extra directives for jobs in this queue.
    """

    name: Name
    kinds: tuple[Name, ...] = Field(min_length=1)
    min_nodes: int | None = None
    max_nodes: int | None = None
    max_walltime: Walltime | None = None
    bands: tuple[Band, ...] = ()
    partition: str | None = None
    qos: str | None = None
    max_gpus: int | None = None
    max_gpus_per_node: int | None = None
    shared: bool = False
    exclusive: bool = False
    batch: bool = True
    open: bool = True
    default: bool = False
    preemptible: bool = False
    charge: float | None = None
    directives: tuple[Line, ...] = ()
    note: str | None = None


class Queues(Facts):
    """The site's queues, in the order a person would try them."""

    entry: tuple[Queue, ...] = Field(min_length=1)


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
    """How the site is reached from elsewhere (addresses only; nothing secret)."""

    ssh: str | None = None
    globus_endpoint: str | None = None
    globus_required: tuple[str, ...] = ()
    note_for_users: str | None = None


class Defaults(Model):
    """What a person or group fixed for their own use of a site; never part of the shipped catalogue.

    Attributes:
        account, queue: used when a request names none.
        run_root: folder that holds run directories, on a file system all nodes see.
        max_node_hours: refuse jobs above; ask_above_node_hours: ask before jobs above.
    """

    account: str | None = None
    queue: str | None = None
    run_root: str | None = None
    max_node_hours: float | None = None
    ask_above_node_hours: float | None = None


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
