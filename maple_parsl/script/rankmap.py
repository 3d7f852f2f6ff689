"""Who runs where, for a script as it was read: in blocks of equal nodes, so that size costs nothing.

``rank_map(script, site)`` gives a :class:`ScriptRanks`: one :class:`LaunchRanks` for each launch. Every number may be
None and every other field unknown: only what directives, options, environment and site facts settle is filled in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from maple_parsl.script.model import Launch, Place, Script
from maple_parsl.script.placing import Started, started
from maple_parsl.script.values import Value
from maple_parsl.script.variables import JobShape
from maple_parsl.script.workers import Workers, workers

if TYPE_CHECKING:
    from maple_parsl.site import NodeKind, Site

_RANK_NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE")
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")
_EVERYWHERE = frozenset("first_host last_host host batch_host first_host_ip batch_host_ip host_ip last_host_ip".split())


@dataclass(frozen=True, slots=True)
class Block:
    """``nodes`` neighbouring nodes of ``per_node`` processes each, from ``first_node`` and ``first_rank`` on."""

    first_node: int
    nodes: int
    per_node: int
    first_rank: int


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the processes meet.

    Attributes:
        host, port: as the processes are told; None where they are told nothing.
        same_everywhere: every node is told the same. reachable: from other nodes; None: cannot be told.
        source: the option or variable. place: where it stands.
    """

    host: Value | None
    port: Value | None
    same_everywhere: bool | None
    reachable: bool | None
    source: str
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Devices:
    """Devices one process sees: ``count``, their indices where listed, and what says so."""

    count: int | None
    indices: tuple[int, ...] | None = None
    per_process: bool = False
    source: str = ""


@dataclass(frozen=True, slots=True)
class LaunchRanks:
    """One launch.

    Attributes:
        launch: the outer one. nodes: nodes it covers. outer_per_node: processes its launcher starts per node.
        inner_per_node: processes each of these starts (1 where no framework's launcher follows).
        processes: training processes really started. world_size: what they are told it is.
        per_node: training processes per node. blocks: the placement.
        rank, local_rank, node_rank: where a process learns it: a variable's value, or None for the framework itself.
        framework: the framework's launcher, or empty. devices, cores: of one training process.
        endpoint, backend: rendezvous, and the collective backend where stated.
        job_nodes: nodes of the job.
    """

    launch: Launch
    job_nodes: int | None
    nodes: int | None
    outer_per_node: int | None
    inner_per_node: int | None
    processes: int | None
    world_size: int | None
    blocks: tuple[Block, ...]
    framework: str
    framework_nodes: int | None
    rank: Value | None
    local_rank: Value | None
    node_rank: Value | None
    devices: Devices
    cores: int | None
    endpoint: Endpoint
    backend: str | None

    @property
    def per_node(self) -> int | None:
        if self.outer_per_node is None or self.inner_per_node is None:
            return None
        return self.outer_per_node * self.inner_per_node

    @property
    def settled(self) -> bool:
        """Nodes and processes are known."""
        return self.nodes is not None and self.processes is not None

    def place_of(self, rank: int) -> tuple[int, int] | None:
        """Node and local index of a process, in node-major order."""
        for block in self.blocks:
            inside = rank - block.first_rank
            if 0 <= inside < block.nodes * block.per_node:
                return block.first_node + inside // block.per_node, inside % block.per_node
        return None


@dataclass(frozen=True, slots=True)
class ScriptRanks:
    """Every launch of a script, in order; ``main`` is the one with the most processes."""

    script: Script
    job_nodes: int | None
    gpus_per_node: int | None
    kind: NodeKind | None
    launches: tuple[LaunchRanks, ...]

    @property
    def main(self) -> LaunchRanks | None:
        """The training launch: the one that starts most, the last of equals."""
        best: LaunchRanks | None = None
        for found in self.launches:
            if best is None or (found.processes or 0) >= (best.processes or 0):
                best = found
        return best

    def __iter__(self) -> Iterator[LaunchRanks]:
        return iter(self.launches)


def rank_map(script: Script, site: Site | None = None) -> ScriptRanks:
    """Who runs where. ``site`` settles what directives leave open: devices of a node, the launcher's dialect."""
    shape = JobShape(script)
    kind = _kind(script, site)
    if kind is not None and kind.select_unit == "gpu" and script.scheduler == "pbs":
        shape.node_range = (None, None)  # select counts GPUs here
    gpus = shape.gpus_per_node
    if gpus is None and kind is not None and site is not None and site.directives.gpu_request == "none":
        gpus = kind.devices
    found = tuple(_of(launch, shape, site, kind, gpus) for launch in script.launches if launch.launcher != "ray")
    return ScriptRanks(script, shape.nodes, gpus, kind, found)


def _kind(script: Script, site: Site | None) -> NodeKind | None:
    """The node kind, by the queue asked for or where the site has only one."""
    if site is None:
        return None
    for name in ("queue", "--qos", "--partition"):
        directive = script.directive(name)
        queue = site.queue(directive.value) if directive and directive.value else None
        if queue is not None:
            return site.kinds.get(queue.kinds[0])
    return next(iter(site.kinds.values())) if len(site.kinds) == 1 else None


def _of(launch: Launch, shape: JobShape, site: Site | None, kind: NodeKind | None, gpus: int | None) -> LaunchRanks:
    outer = started(launch, shape, site)
    inner = workers(launch, shape, gpus if gpus is not None else kind.devices if kind else None)
    nodes, per_node = outer.nodes, outer.per_node
    if inner.spans_nodes and not outer.launched:
        nodes = inner.nodes if inner.nodes is not None else shape.nodes
        per_node = 1
    total = outer.total if outer.launched else (nodes if inner.spans_nodes else 1)
    processes = total * inner.per_process if total is not None and inner.per_process is not None else None
    leaf = launch.leaf
    rank, local_rank = leaf.variable("RANK"), leaf.variable("LOCAL_RANK")
    if inner.framework:
        rank = local_rank = None
    world = inner.world
    if world is None and not inner.framework:
        told = leaf.variable("WORLD_SIZE")
        world = told.number if told is not None else outer.total
    return LaunchRanks(
        launch=launch,
        job_nodes=shape.nodes,
        nodes=nodes,
        outer_per_node=per_node,
        inner_per_node=inner.per_process,
        processes=processes,
        world_size=world,
        blocks=_blocks(outer if outer.launched else Started(nodes, per_node, total, bool(nodes)), inner),
        framework=inner.framework,
        framework_nodes=inner.nodes,
        rank=rank,
        local_rank=local_rank,
        node_rank=inner.node_rank if inner.framework else leaf.variable("NODE_RANK"),
        devices=_devices(launch, leaf, gpus, outer, inner),
        cores=outer.cores,
        endpoint=_endpoint(launch, inner),
        backend=_backend(leaf),
    )


def _blocks(outer: Started, inner: Workers) -> tuple[Block, ...]:
    """Slurm's block distribution: the first nodes take one more where the total does not divide."""
    each = inner.per_process
    if outer.nodes is None or outer.total is None or each is None or outer.nodes <= 0:
        return ()
    low, more = divmod(outer.total, outer.nodes)
    if outer.per_node is not None and more and outer.per_node * outer.nodes != outer.total:
        full, rest = divmod(outer.total, outer.per_node) if outer.fills else (0, 0)
        if outer.fills:
            blocks = [Block(0, full, outer.per_node * each, 0)] if full else []
            if rest:
                blocks.append(Block(full, 1, rest * each, full * outer.per_node * each))
            return tuple(blocks)
    done = []
    if more:
        done.append(Block(0, more, (low + 1) * each, 0))
    if low:
        done.append(Block(more, outer.nodes - more, low * each, more * (low + 1) * each))
    return tuple(done)


def _devices(launch: Launch, leaf: Launch, gpus: int | None, outer: Started, inner: Workers) -> Devices:
    for name in _VISIBLE:
        value = leaf.variable(name)
        if value is None:
            continue
        text = value.text
        if text is not None:
            numbers = [p.strip() for p in text.split(",") if p.strip()]
            if all(n.isascii() and n.isdigit() for n in numbers):
                return Devices(len(numbers), tuple(int(n) for n in numbers), source=name)
            return Devices(None, source=name)
        return Devices(1 if value.has("per_task") else None, None, value.has("per_task"), name)
    if any(w.kind == "affinity" for part in launch.chain for w in part.wrappers):
        return Devices(None, None, True, "affinity script")
    if outer.gpus_per_task is not None:
        return Devices(outer.gpus_per_task, None, not inner.framework, "gpus_per_task")
    if outer.bound_gpu:
        return Devices(1, None, True, "gpu_bind")
    if outer.gpus is not None:
        return Devices(outer.gpus, tuple(range(outer.gpus)), source="launcher")
    if gpus is not None and gpus < 4096:
        return Devices(gpus, tuple(range(gpus)), source="node")
    return Devices(None)


def _endpoint(launch: Launch, inner: Workers) -> Endpoint:
    host, port, source, place = inner.host, inner.port, inner.endpoint_source, inner.endpoint_place
    if host is None:
        found = launch.leaf.environment.get("MASTER_ADDR")
        if found is not None:
            host, source, place = found.value, "MASTER_ADDR", found.place
    if port is None:
        variable = launch.leaf.variable("MASTER_PORT")
        port = variable if variable is not None else port
    if host is None:
        return Endpoint(None, port, None, None, source)
    return Endpoint(host, port, _same(host, port), _reachable(host), source, place)


def _same(host: Value, port: Value | None) -> bool | None:
    for value in (host, port):
        if value is None:
            continue
        if value.has("this_host", "this_host_ip", "per_task", "free_port_each"):
            return False
        if value.is_unknown or value.has("environment", "unset"):
            return None
    return True


def _reachable(host: Value) -> bool | None:
    text = host.text
    if text is not None:
        if text.lower() in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "") or text.startswith("127."):
            return False
        return None
    kinds = {s.kind for s in host.symbols}
    return True if kinds and kinds <= _EVERYWHERE and not any(s.derived for s in host.symbols) else None


def _backend(leaf: Launch) -> str | None:
    for index, word in enumerate(leaf.program):
        text = word.value.text or ""
        name, mark, value = text.partition("=")
        if name.lstrip("-").replace("-", "_") in ("backend", "dist_backend", "distributed_backend") and name[:1] == "-":
            chosen = value if mark else (leaf.program[index + 1].value.text if index + 1 < len(leaf.program) else None)
            if chosen in ("nccl", "gloo", "mpi", "xccl", "ccl", "rccl", "ucc"):
                return chosen
    return None
