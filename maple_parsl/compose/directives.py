"""The scheduler's options of a job, in its own words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from maple_parsl.compose.context import Context, Target, computed, stated
from maple_parsl.directive import count_stated, time_stated
from maple_parsl.errors import RequestError
from maple_parsl.plan import Directive, Origin, Shape
from maple_parsl.walltime import Walltime

if TYPE_CHECKING:
    from maple_parsl.template import Style

_SHORT = {
    "-N": "--nodes",
    "-n": "--ntasks",
    "-c": "--cpus-per-task",
    "-t": "--time",
    "-A": "--account",
    "-p": "--partition",
    "-q": "--qos",
    "-C": "--constraint",
    "-G": "--gpus",
    "-J": "--job-name",
    "-o": "--output",
    "-e": "--error",
    "-L": "--licenses",
    "-w": "--nodelist",
    "-x": "--exclude",
    "-M": "--clusters",
    "-d": "--dependency",
    "-a": "--array",
    "-S": "--core-spec",
    "-D": "--chdir",
}
_OURS = ("--job-name", "--output", "--error", "--open-mode", "-N", "-o", "-e", "-j")


def key(option: str, scheduler: str) -> str:
    """What an option sets: ``--time`` for ``-t 5`` and ``--time=5``; ``-l walltime`` for PBS resources."""
    head, _, rest = option.replace("=", " ", 1).partition(" ")
    if scheduler == "pbs":
        if option.startswith("-l"):
            return "-l " + re.split(r"[=:,\s]", option[2:].strip(), maxsplit=1)[0]
        return option[:2]
    if not option.startswith("--") and len(option) > 2 and option[2] != " ":
        head = option[:2]  # -N2
    return _SHORT.get(head, head) if rest is not None else head


def directives(context: Context, target: Target, shape: Shape, style: Style) -> tuple[Directive, ...]:
    """All options in the order a reader expects; the user's replace ours of the same kind, never silently."""
    kind = context.site.scheduler.kind
    if kind == "none":
        if context.request.directives:
            context.problems.append(f"{context.site.name} has no scheduler, so directives mean nothing there")
        return ()
    _one_cost(context, target, shape)
    mine = _slurm(context, target, shape, style) if kind == "slurm" else _pbs(context, target, shape)
    mine += [
        Directive(option=option, origin=context.fact("directives.always", context.site.directives, "always here"))
        for option in context.site.directives.always
    ]
    if target.queue:
        mine += [
            Directive(
                option=option,
                origin=context.fact(f"queues.entry.{target.queue.name}", context.site.queues, "of this queue"),
            )
            for option in target.queue.directives
        ]
    return _with_user(context, mine)


def _within(time: str, walltime: Walltime) -> bool:
    try:
        return Walltime.parse(time) <= walltime
    except RequestError:
        return time.isdecimal() and int(time) * 60 <= walltime  # minutes for Slurm, less for PBS


def _one_cost(context: Context, target: Target, shape: Shape) -> None:
    """What a job may cost is shown and limited by nodes and walltime: a directive must not say otherwise."""
    request = context.request
    per_node = shape.devices if target.kind.select_unit == "gpu" else 1
    chunks = shape.nodes * (per_node if context.site.scheduler.kind == "pbs" else 1)
    for option in request.directives:
        time = time_stated(option)
        if request.walltime and time and not _within(time, request.walltime):
            context.problems.append(f"directive {option!r} contradicts walltime {request.walltime}; state one of them")
        count = count_stated(option) if key(option, context.site.scheduler.kind) in ("--nodes", "-l select") else None
        if count is not None and count != str(chunks):
            context.problems.append(
                f"directive {option!r} asks for {count} where this launch has {chunks}; state it as nodes instead"
            )


def _with_user(context: Context, mine: list[Directive]) -> tuple[Directive, ...]:
    scheduler, site = context.site.scheduler.kind, context.site
    for option in context.request.directives:
        name = key(option, scheduler)
        if name in _OURS and (scheduler != "slurm" or name.startswith("--")):
            context.problems.append(
                f"directive {option!r}: job name and output belong to the run, so that it can be found again"
            )
            continue
        if name in site.directives.forbidden:
            context.finding(
                "forbidden-directive",
                "SCHED_DIALECT",
                "error",
                f"{site.name} rejects {name}, which you stated",
                evidence=site.directives.forbidden_note or site.directives.source,
                fix=f"leave {option!r} out",
            )
        replaced = [d for d in mine if key(d.option, scheduler) == name]
        mine = [d for d in mine if d not in replaced]
        for old in replaced:
            severity = "warning" if old.origin.layer == "site" else "note"
            context.finding(
                "user-directive",
                "CONTRADICTION",
                severity,
                f"your directive {option!r} replaces {old.option!r} ({old.origin.why})",
                evidence=old.origin.source,
            )
        mine.append(Directive(option=option, origin=stated()))
    return tuple(mine)


def _limits(context: Context, target: Target, account: str, queue: str, walltime: str) -> list[Directive]:
    """Account, queue and walltime, with the option names of the scheduler."""
    request, site = context.request, context.site
    made: list[Directive] = []
    chosen = request.account or site.defaults.account
    if chosen:
        origin = context.provenance.get("account") or stated()
        made.append(Directive(option=f"{account}{chosen}", origin=origin))
    if target.queue or request.queue:
        entry = target.queue
        origin = context.provenance.get("queue") or computed("the chosen queue")
        name = entry.name if entry else str(request.queue)
        as_qos = site.scheduler.queue_option == "qos"
        partition = (entry.partition if entry else None) or (None if as_qos else name)
        qos = (entry.qos if entry else None) or (name if as_qos else None)
        if partition:
            made.append(Directive(option=f"{queue}{partition}", origin=origin))
        if qos:
            made.append(Directive(option=f"--qos={qos}", origin=origin))
    if request.walltime:
        made.append(
            Directive(option=f"{walltime}{request.walltime}", origin=context.provenance.get("walltime") or stated())
        )
    return made


def _slurm(context: Context, target: Target, shape: Shape, style: Style) -> list[Directive]:
    request, site, kind = context.request, context.site, target.kind
    facts = site.directives
    made = _limits(context, target, "--account=", "--partition=", "--time=")
    if site.scheduler.clusters:
        made.append(
            Directive(
                option=f"--clusters={site.scheduler.clusters}",
                origin=context.fact("scheduler.clusters", site.scheduler, "this cluster among several"),
            )
        )
    if kind.constraint:
        made.append(
            Directive(
                option=f'--constraint="{kind.constraint}"'
                if "&" in kind.constraint
                else f"--constraint={kind.constraint}",
                origin=context.fact(f"kinds.{target.kind_name}.constraint", kind, "selects this kind of node"),
            )
        )
    nodes = context.provenance.get("nodes", stated())
    made.append(Directive(option=f"--nodes={shape.nodes}", origin=nodes))
    per_task = "one launcher on each node" if style != "per-device" else "one process for each device"
    if facts.tasks == "ntasks":
        count = shape.nodes * shape.tasks_per_node
        made.append(Directive(option=f"--ntasks={count}", origin=computed(per_task)))
    elif facts.tasks == "ntasks-per-node":
        made.append(Directive(option=f"--ntasks-per-node={shape.tasks_per_node}", origin=computed(per_task)))
    if facts.cpus_per_task and shape.cpus_per_task:
        made.append(
            Directive(
                option=f"--cpus-per-task={shape.cpus_per_task}",
                origin=context.provenance.get("cpus_per_task", computed("cores of the node over its tasks")),
            )
        )
    made += _gpus(context, target, shape)
    made += _memory(context, target, shape)
    lead = lead_seconds(context)
    if lead and site.scheduler.signal:
        made.append(
            Directive(
                option=f"--signal=B:USR1@{lead}",
                origin=computed(f"the script is told {lead} s before the walltime, to save a checkpoint"),
            )
        )
    restart = "--requeue" if request.requeue else "--no-requeue"
    why = "stated in the request" if request.requeue else "a failed node must not start the run again unasked"
    made.append(Directive(option=restart, origin=stated() if request.requeue else Origin(layer="maple", why=why)))
    return made


def _gpus(context: Context, target: Target, shape: Shape) -> list[Directive]:
    facts, kind = context.site.directives, target.kind
    gpus = shape.devices
    if kind.gpus and kind.devices > kind.gpus and not context.request.whole_gpus:
        gpus = -(-shape.devices * kind.gpus // kind.devices)  # the scheduler counts physical GPUs
    typed = f"{kind.gres_type}:" if kind.gres_type else ""
    option = {
        "none": None,
        "gpus-per-node": f"--gpus-per-node={typed}{gpus}",
        "gpus": f"--gpus={typed}{gpus * shape.nodes}",
        "gres": f"--gres=gpu:{typed}{gpus}",
        "select-ngpus": None,
    }[facts.gpu_request]
    if option is None or kind.gpus == 0:
        return []
    return [
        Directive(option=option, origin=context.fact("directives.gpu_request", facts, "how GPUs are asked for here"))
    ]


def _memory(context: Context, target: Target, shape: Shape) -> list[Directive]:
    request, facts = context.request, context.site.directives
    made: list[Directive] = []
    whole = shape.whole_node and not (target.queue and target.queue.max_gpus_per_node)
    exclusive = request.exclusive if request.exclusive is not None else (facts.exclusive and whole)
    if exclusive:
        origin = (
            stated()
            if request.exclusive
            else context.fact(
                "directives.exclusive", facts, "nodes are shared by default, and this job uses whole ones"
            )
        )
        made.append(Directive(option="--exclusive", origin=origin))
    if request.memory:
        if facts.memory == "forbidden":
            context.finding(
                "forbidden-directive",
                "SCHED_DIALECT",
                "error",
                f"{context.site.name} rejects --mem, and memory was stated",
                evidence=facts.forbidden_note or facts.source,
                fix="leave the memory out",
            )
        made.append(Directive(option=f"--mem={request.memory}", origin=stated()))
    elif facts.memory in ("whole-node", "required"):
        if whole:
            made.append(
                Directive(
                    option="--mem=0",
                    origin=context.fact("directives.memory", facts, "all of the node's memory; the default is little"),
                )
            )
        elif target.kind.memory_gib:
            part = int(target.kind.memory_gib * shape.devices / target.kind.devices * 0.9)
            made.append(
                Directive(
                    option=f"--mem={part}G",
                    origin=context.fact(
                        f"kinds.{target.kind_name}.memory_gib",
                        target.kind,
                        "the devices' share of the node's memory, a tenth left to the system",
                    ),
                )
            )
        else:
            context.problems.append(f"{context.site.name} gives little memory by default; state how much")
    return made


def _pbs(context: Context, target: Target, shape: Shape) -> list[Directive]:
    request, kind = context.request, target.kind
    chunks = shape.nodes * (shape.devices if kind.select_unit == "gpu" else 1)
    cores = kind.hw_threads or kind.cores
    resources = (kind.select or "").format(
        devices=shape.devices, cores=kind.cores or cores or 1, tasks=shape.tasks_per_node
    )
    select = f"-l select={chunks}" + (f":{resources}" if resources else "")
    if request.memory:
        select += f":mem={request.memory.lower()}b"
    made = [
        Directive(
            option=select,
            origin=context.fact(f"kinds.{target.kind_name}.select", kind, f"one chunk is one {kind.select_unit}"),
        )
    ]
    made += _limits(context, target, "-A ", "-q ", "-l walltime=")
    if request.exclusive:
        made.append(Directive(option="-l place=scatter:exclhost", origin=stated()))
    rerun = "-r y" if request.requeue else "-r n"
    why = "a failed node must not start the run again unasked"
    made.append(Directive(option=rerun, origin=stated() if request.requeue else Origin(layer="maple", why=why)))
    made.append(Directive(option="-j oe", origin=Origin(layer="maple", why="one log")))
    return made


def lead_seconds(context: Context) -> int:
    """How long before the walltime the script is told: a tenth of it, 30 to 300 s; 0 without a walltime."""
    walltime = context.request.walltime
    return 0 if walltime is None else max(30, min(300, int(walltime) // 10)) if walltime >= 120 else 0
