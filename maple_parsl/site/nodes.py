"""Kinds of node: devices, cores, and how processes are placed on them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from maple_parsl.site.base import Facts, Features, Line, Model, Name, Names, Variable


class Device(Model):
    """One device as the framework sees it, and the cores closest to it.

    Attributes:
        cores: CPU list such as ``24-31,56-63``, in the operating system's numbering.
        numa: NUMA node of those cores.
    """

    cores: str = Field(pattern=r"^\d+(-\d+)?(,\d+(-\d+)?)*$")
    numa: int | None = None
    nic: str | None = None


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
    constraint: Features | None = None
    gres_type: Names | None = None
    select: str | None = Field(default=None, pattern=r"^[A-Za-z0-9._=:{}+-]+$")
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
        if self.select is not None:
            try:
                self.select.format(devices=1, cores=1, tasks=1)
            except (KeyError, IndexError, ValueError, AttributeError):
                raise ValueError(f"select {self.select!r}: {{devices}}, {{cores}}, {{tasks}} are filled in") from None
        return self
