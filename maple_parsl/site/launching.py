"""Starting processes: the launcher, the rendezvous, the environment."""

from __future__ import annotations

from typing import Literal

from maple_parsl.site.base import Facts, Line, Variable


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
        own: lines that complete an environment of the user's own (venv, conda), after it, such as the network plugin.
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
    own: tuple[Line, ...] = ()
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
