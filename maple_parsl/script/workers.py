"""What a framework's launcher starts in each place it runs, and what it tells its processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from maple_parsl.script.launches import FRAMEWORKS
from maple_parsl.script.model import Launch, Place
from maple_parsl.script.values import Value, const
from maple_parsl.script.variables import JobShape, expand_nodes

_ALL_DEVICES = ("gpu", "auto", "cuda", "xpu")


@dataclass(frozen=True, slots=True)
class Workers:
    """The inner launcher.

    Attributes:
        framework: its name, empty where there is none. per_process: workers each instance starts.
        nodes: nodes it believes in. world: world size it tells. spans_nodes: it reaches other nodes itself.
        host, port: the rendezvous it is given. static: that of fixed node ranks, not c10d or etcd.
    """

    framework: str = ""
    per_process: int | None = 1
    nodes: int | None = None
    world: int | None = None
    spans_nodes: bool = False
    node_rank: Value | None = None
    host: Value | None = None
    port: Value | None = None
    endpoint_source: str = ""
    endpoint_place: Place | None = None
    static: bool = False


def workers(launch: Launch, shape: JobShape, devices: int | None) -> Workers:
    """Of the first framework's launcher in a chain."""
    for part in launch.chain:
        if part.launcher in FRAMEWORKS:
            return _of(part, shape, devices)
    return Workers(per_process=None if launch.leaf.opaque else 1)


def _of(part: Launch, shape: JobShape, devices: int | None) -> Workers:
    if part.launcher == "torchrun":
        return _torchrun(part, devices)
    if part.launcher == "accelerate":
        return _accelerate(part, devices)
    if part.launcher == "deepspeed":
        return _deepspeed(part, shape, devices)
    if part.launcher == "horovodrun":
        total = _number(part, "ntasks")
        nodes = len(part.config) or None
        hosts = part.value("hosts")
        if hosts is not None and hosts.text:
            nodes = len(hosts.text.split(","))
        each = total // nodes if total and nodes and total % nodes == 0 else None
        return Workers("horovodrun", each, nodes, total, True)
    each = _number(part, "nproc_per_node")
    world = _number(part, "world_size")
    nodes = _number(part, "nnodes")
    if world is None and each is not None and nodes is not None:
        world = each * nodes
    if world is None and part.launcher == "composer" and part.option("world_size") is None:
        world = each
    host, port, source, place = _master(part)
    return Workers(part.launcher, each, nodes, world, False, part.value("node_rank"), host, port, source, place, True)


def _number(part: Launch, name: str) -> int | None:
    value = part.value(name)
    return value.number if value is not None else None


def _counted(part: Launch, name: str, default: int | None, devices: int | None) -> int | None:
    value = part.value(name)
    if value is None:
        return default
    if value.text in _ALL_DEVICES or value.has("gpu_count"):
        return devices
    return value.number


def _master(part: Launch) -> tuple[Value | None, Value | None, str, Place | None]:
    option = part.option("master_addr")
    host = option.value if option else None
    return host, part.value("master_port"), "master_addr" if option else "", option.value_place if option else None


def _endpoint(value: Value) -> tuple[Value, Value | None]:
    """Host and port of ``host:port``."""
    pieces = value.split(":")
    if len(pieces) < 2:
        return value, None
    host = pieces[0]
    for further in pieces[1:-1]:
        host = host + const(":") + further
    return host, pieces[-1]


def _torchrun(part: Launch, devices: int | None) -> Workers:
    each = _counted(part, "nproc_per_node", 1, devices)
    stated = part.value("nnodes")
    nodes: int | None = 1
    if stated is not None:
        low, high = expand_nodes((stated.text or "").replace(":", "-") or None)
        nodes = low if low == high else None
        nodes = stated.number if stated.number is not None else nodes
    world = nodes * each if nodes is not None and each is not None else None
    host, port, source, place = _master(part)
    backend = part.value("rdzv_backend")
    option = part.option("rdzv_endpoint")
    static = backend is None or backend.text in ("static", "")
    if part.option("standalone"):
        return Workers("torchrun", each, 1, each, False, None, const("localhost"), None, "standalone", None, False)
    if option is not None:
        host, port = _endpoint(option.value)
        source, place = "rdzv_endpoint", option.value_place
    return Workers("torchrun", each, nodes, world, False, part.value("node_rank"), host, port, source, place, static)


def _setting(config: Mapping[str, str], key: str) -> Value | None:
    text = config.get(key)
    return const(text) if text not in (None, "", "null", "~") else None


def _accelerate(part: Launch, devices: int | None) -> Workers:
    config = part.config
    unread = part.config_found is False

    def setting(name: str, key: str) -> Value | None:
        given = part.value(name)
        return given if given is not None else _setting(config, key)

    total_value, nodes_value = setting("num_processes", "num_processes"), setting("nnodes", "num_machines")
    nodes = nodes_value.number if nodes_value is not None else None if unread else 1
    total = total_value.number if total_value is not None else None
    if total_value is None and not unread and part.option("multi_gpu") and nodes is not None and devices is not None:
        total = devices * nodes
    each = total // nodes if total is not None and nodes and total % nodes == 0 else None
    host, port = setting("master_addr", "main_process_ip"), setting("master_port", "main_process_port")
    option = part.option("master_addr")
    source = "main_process_ip" if host is not None else ""
    conf = part.value("rdzv_conf")
    if host is None and conf is not None:
        for piece in conf.split(","):
            name, *rest = piece.split("=")
            if name.text == "rdzv_endpoint" and rest:
                host, port, source = *_endpoint(rest[0]), "rdzv_conf"
    rank = setting("node_rank", "machine_rank")
    place = option.value_place if option else None
    backend = setting("rdzv_backend", "rdzv_backend")
    static = backend is None or backend.text == "static"
    return Workers("accelerate", each, nodes, total, False, rank, host, port, source, place, static)


def _deepspeed(part: Launch, shape: JobShape, devices: int | None) -> Workers:
    each = _number(part, "nproc_per_node")
    nodes = _number(part, "nnodes")
    hostfile = part.option("hostfile")
    slots = set(part.config.values())
    if each is None and part.option("nproc_per_node") is None:
        only = slots.pop() if len(slots) == 1 else ""
        each = int(only) if only.isascii() and only.isdigit() and len(only) < 6 else None if hostfile else devices
    if nodes is None and part.option("nnodes") is None:
        nodes = len(part.config) or (None if hostfile else 1)
        if hostfile and not part.config and hostfile.value.has("node_file"):
            nodes = shape.nodes
    spans = bool(hostfile) and part.option("no_ssh") is None
    host, port, source, place = _master(part)
    world = nodes * each if nodes is not None and each is not None else None
    return Workers("deepspeed", each, nodes, world, spans, part.value("node_rank"), host, port, source, place, True)
