"""The job's shape: nodes, devices, processes, cores, and where each local rank sits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from maple_parsl.compose.context import Context, Target
from maple_parsl.plan import Placement, Shape
from maple_parsl.request import Parallelism

if TYPE_CHECKING:
    from maple_parsl.template import Style


def devices_per_node(context: Context, target: Target) -> int | None:
    """Devices used on each node; None with a problem noted where that cannot be told."""
    request, kind, queue = context.request, target.kind, target.queue
    full = kind.devices
    if request.whole_gpus:
        if kind.devices == kind.gpus:
            context.note("devices", "computed", "each GPU of this node is one device")
        elif not kind.composite_exports:
            context.problems.append(
                f"whole GPUs were asked for, but each GPU of {context.site.name} is "
                f"{kind.devices // max(kind.gpus, 1)} devices and no way to join them is known;"
                f" ask for {kind.devices} devices per node"
            )
            return None
        else:
            full = kind.gpus
    if kind.composed and request.gpus_per_node is None:
        context.problems.append(f"{context.site.name} composes GPUs to a job's nodes; state how many GPUs per node")
        return None
    if request.gpus_per_node is not None:
        if request.gpus_per_node > full and not kind.composed:
            total = (request.nodes or 1) * request.gpus_per_node
            context.problems.append(
                f"{request.gpus_per_node} GPUs per node asked for, but a {context.site.name} node"
                f" ({target.kind_name}) has {full}; {total} in all would be"
                f" {math.ceil(total / full)} nodes x {full}"
            )
            return None
        context.note("devices", "stated", "stated in the request")
        return request.gpus_per_node
    if queue and queue.max_gpus_per_node and queue.max_gpus_per_node < full:
        context.problems.append(
            f"queue {queue.name} gives a part of a node (at most {queue.max_gpus_per_node} GPUs);"
            " state how many GPUs per node"
        )
        return None
    if target.kind.select_unit == "gpu":
        context.problems.append(f"queue {queue.name if queue else '?'} counts GPUs; state how many GPUs per node")
        return None
    context.provenance["devices"] = context.fact(
        f"kinds.{target.kind_name}.devices", kind, f"every device of a {target.kind_name} node"
    )
    return full


def shape(context: Context, target: Target, nodes: int, devices: int, style: Style) -> Shape:
    """Processes and cores. Cores come from the request or the site; unknown stays None."""
    kind, request = target.kind, context.request
    per_device = kind.cpus_per_device
    if per_device is None and kind.cores is not None:
        per_device = max(1, kind.cores // kind.devices)
    if per_device is not None and request.whole_gpus and kind.gpus:
        per_device *= kind.devices // kind.gpus
    tasks = devices if style == "per-device" else 1
    if request.cpus is not None:
        cpus: int | None = request.cpus * (1 if style == "per-device" else devices)
        context.note("cpus_per_task", "stated", f"{request.cpus} per process, stated in the request")
        most = kind.hw_threads or kind.cores
        if most and request.cpus * devices > most:
            context.problems.append(
                f"{request.cpus} cores per process x {devices} processes is more than the {most}"
                f" of a {context.site.name} node ({target.kind_name})"
            )
    elif per_device is None:
        cpus = None
    else:
        cpus = per_device * (1 if style == "per-device" else devices)
        context.provenance["cpus_per_task"] = context.fact(
            f"kinds.{target.kind_name}.cpus_per_device", kind, f"{per_device} cores for each device"
        )
    whole = devices == (kind.gpus if request.whole_gpus and kind.composite_exports else kind.devices)
    return Shape(
        nodes=nodes,
        devices=devices,
        tasks_per_node=tasks,
        world_size=nodes * devices,
        cpus_per_task=cpus,
        whole_node=whole,
    )


def placement(target: Target, shape: Shape) -> Placement:
    """Device, cores and NUMA node of each local rank, as far as the site's map is known."""
    kind = target.kind
    order = kind.visible_order if kind.visible_order and shape.whole_node else tuple(range(shape.devices))
    if kind.device_map and shape.whole_node and len(order) == len(kind.device_map):
        parts = [kind.device_map[index] for index in order]
        return Placement(device=order, cores=tuple(p.cores for p in parts), numa=tuple(p.numa for p in parts))
    nothing = (None,) * shape.devices
    return Placement(device=order[: shape.devices], cores=nothing, numa=nothing)


def degrees(context: Context, paradigm: str, world: int) -> Parallelism:
    """Degrees of 3-D parallelism that multiply to the world size; stated ones are kept."""
    stated = context.request.parallelism
    if paradigm != "3d":
        if paradigm == "zero" and stated.zero_stage is None:
            context.note("zero_stage", "maple", "ZeRO stage 1 unless stated: the one closest to plain DDP")
            return Parallelism(zero_stage=1)
        for name in ("tp", "pp"):
            if getattr(stated, name) is not None and paradigm in ("ddp", "fsdp"):
                context.finding(
                    "degree-unused",
                    "INVALID_VALUE",
                    "warning",
                    f"{name}={getattr(stated, name)} has no effect on {paradigm}",
                    fix="use the paradigm 3d, or leave the degree out",
                )
        return stated
    known = {name: getattr(stated, name) for name in ("dp", "tp", "pp")}
    product = math.prod(value for value in known.values() if value)
    if world % product:
        context.problems.append(
            f"the degrees {' x '.join(f'{k}={v}' for k, v in known.items() if v)} do not divide"
            f" the {world} processes of this job"
        )
        return stated
    rest = world // product
    for name in ("tp", "pp"):  # the smallest real degree of each, the remainder is data parallel
        if known[name] is None:
            known[name] = 2 if rest % 2 == 0 else 1
            rest //= known[name]
            context.note(name, "computed", f"{name}={known[name]}, so that the degrees fill the world size")
    if known["dp"] is None:
        known["dp"] = rest
        context.note("dp", "computed", f"dp={rest}: the world size {world} over tp x pp")
        rest = 1
    if rest != 1:
        context.problems.append(
            f"dp={known['dp']} x tp={known['tp']} x pp={known['pp']} is not the {world} processes of this job"
        )
    return Parallelism(dp=known["dp"], tp=known["tp"], pp=known["pp"], zero_stage=stated.zero_stage)
