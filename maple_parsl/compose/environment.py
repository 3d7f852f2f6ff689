"""Shell lines and variables that come before the launch."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from maple_parsl.compose import secrets
from maple_parsl.compose.context import Context, Target, stated
from maple_parsl.plan import Export, Origin, Shape, Step
from maple_parsl.shell import path, quote, word

if TYPE_CHECKING:
    from maple_parsl.template import Template

LAUNCH_SETS = frozenset("RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE NODE_RANK MASTER_ADDR MASTER_PORT".split())
# So that a program does not wait for a network that is not there; docs.wandb.ai, huggingface.co/docs/huggingface_hub.
_OFFLINE = {"WANDB_MODE": "offline", "HF_HUB_OFFLINE": "1"}
_CONDA_HOOK = 'eval "$(conda shell.bash hook)"'
_CONDA_PATH = 'command -v conda >/dev/null 2>&1 || PATH="${CONDA_EXE:+${CONDA_EXE%/*}:}$PATH"'
_NO_MODULE = "command -v module >/dev/null 2>&1 || . /etc/profile"


def setup(context: Context, target: Target, shape: Shape) -> tuple[Step, ...]:
    """Site lines, then the user's environment (or the site's framework where none is stated), then their lines."""
    request, site, kind = context.request, context.site, target.kind
    facts = site.environments[kind.environment]
    where = f"environments.{kind.environment}"
    software = request.environment
    steps = [
        Step(line=line, origin=context.fact(f"{where}.base", facts, "every job needs this here")) for line in facts.base
    ]
    steps += [Step(line=f"module load {word(path(name))}", origin=stated()) for name in software.modules]
    if software.conda:
        steps += [
            Step(line=line, origin=context.fact(f"{where}.conda", facts, "brings the conda command"))
            for line in facts.conda
            if line not in facts.base
        ]
        steps.append(Step(line=f"conda activate {word(path(software.conda))}", origin=stated()))
    if software.venv:
        steps.append(Step(line=f"source {word(path(software.venv.rstrip('/') + '/bin/activate'))}", origin=stated()))
    if software.conda or software.venv:
        steps += [
            Step(line=line, origin=context.fact(f"{where}.own", facts, "completes an environment of one's own here"))
            for line in facts.own
        ]
    if software.container:
        steps += [
            Step(line=line, origin=context.fact(f"{where}.container_setup", facts, "containers need this here"))
            for line in facts.container_setup
        ]
    if not software.stated:
        steps += [
            Step(line=line, origin=context.fact(f"{where}.framework", facts, "the site's own PyTorch"))
            for line in facts.framework
        ]
        if not facts.framework and not request.setup and site.scheduler.kind != "none":
            context.finding(
                "no-framework",
                "ENVIRONMENT",
                "warning",
                f"{site.name} has no PyTorch that Maple knows of, and none was stated: python3 may find no torch",
                evidence=facts.framework_note or facts.source,
                fix="state --venv, --conda, --container or --module"
                + (f" ({facts.framework_note.rstrip('.')})" if facts.framework_note else ""),
            )
    elif (software.conda or software.venv) and facts.framework_note and site.scheduler.kind != "none":
        context.finding(
            "own-environment",
            "ENVIRONMENT",
            "note",
            f"the Python is your own; what is known of PyTorch here: {facts.framework_note}",
            evidence=facts.source,
        )
    if facts.network_prepend and shape.nodes > 1:
        paths = ":".join(quote(folder) for folder in facts.network_prepend)
        steps.append(
            Step(
                line=f"export LD_LIBRARY_PATH={paths}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}",
                origin=context.fact(f"{where}.network_prepend", facts, "the network plugin of the collectives"),
            )
        )
    steps += secrets.steps(context)
    steps += secrets.inputs(context)
    for line in request.setup:
        _refuse_broken(context, line)
        steps.append(Step(line=line, origin=stated()))
    activate = next((i for i, step in enumerate(steps) if step.line.startswith("conda activate")), None)
    if activate is not None and all(step.line != _CONDA_HOOK for step in steps[:activate]):
        hook = Origin(layer="maple", why="a job's shell has no conda function of its own")
        steps.insert(activate, Step(line=_CONDA_HOOK, origin=hook))
        if not facts.conda:
            found = Origin(layer="maple", why="a shell that read no start-up files has no conda on its path")
            steps.insert(activate, Step(line=_CONDA_PATH, origin=found))
    if any(step.line.startswith("module ") for step in steps):
        guard = Origin(layer="maple", why="a job sent from a bare shell has no module command yet")
        steps.insert(0, Step(line=_NO_MODULE, origin=guard))
    return tuple(steps)


def _refuse_broken(context: Context, line: str) -> None:
    try:
        shlex.split(line, comments=True)
    except ValueError as error:
        context.problems.append(f"setup line {line!r} is not a whole shell line ({error})")
    if line.rstrip().endswith("\\"):
        context.problems.append(f"setup line {line!r} ends in a backslash and would swallow the next line")


def exports(context: Context, target: Target, template: Template, shape: Shape) -> tuple[Export, ...]:
    """Variables in order of authority: site, kind, network (several nodes only), template, user."""
    request, site, kind = context.request, context.site, target.kind
    facts = site.environments[kind.environment]
    where = f"environments.{kind.environment}"
    made: dict[str, Export] = {}

    def put(name: str, value: str, origin: Origin) -> None:
        made.pop(name, None)
        made[name] = Export(name=name, value=value, origin=origin)

    for name, value in facts.proxy.items():
        put(name, value, context.fact(f"{where}.proxy", facts, "compute nodes have no other way out"))
    for name, value in facts.exports.items():
        put(name, value, context.fact(f"{where}.exports", facts, "set on every job here"))
    for name, value in kind.exports.items():
        put(name, value, context.fact(f"kinds.{target.kind_name}.exports", kind, f"for {kind.title}"))
    if request.whole_gpus and kind.devices != kind.gpus:
        for name, value in kind.composite_exports.items():
            put(name, value, context.fact(f"kinds.{target.kind_name}.composite_exports", kind, "whole GPUs"))
    if shape.nodes > 1:
        for name, value in facts.network.items():
            put(name, value, context.fact(f"{where}.network", facts, "network of jobs on several nodes"))
        nccl = site.rendezvous.interface if kind.backend == "nccl" else None
        interfaces = {"NCCL_SOCKET_IFNAME": nccl, "GLOO_SOCKET_IFNAME": site.rendezvous.gloo_interface}
        for name, interface in interfaces.items():
            if interface and name not in made:
                put(name, interface, context.fact("rendezvous", site.rendezvous, "the network between nodes"))
    put(
        "MAPLE_DEVICE",
        kind.torch_device,
        context.fact(f"kinds.{target.kind_name}.torch_device", kind, "device type"),
    )
    put(
        "MAPLE_BACKEND",
        kind.backend,
        context.fact(f"kinds.{target.kind_name}.backend", kind, "collective backend"),
    )
    if kind.torch_device == "cpu" and (template.framework == "deepspeed" or request.paradigm == "zero"):
        why = "DeepSpeed looks for GPUs unless it is told otherwise"
        put("DS_ACCELERATOR", "cpu", Origin(layer="computed", why=why))
    if facts.outbound == "none":
        offline = context.fact(f"{where}.outbound", facts, "compute nodes here reach no network")
        for name, value in _OFFLINE.items():
            if name not in request.env:
                put(name, value, offline)
    threads = _threads(shape, template)
    if threads:
        why = "one thread pool per process, not one per core of the node for each"
        put("OMP_NUM_THREADS", str(threads), Origin(layer="computed", why=why))
    for name, value in template.exports.items():
        origin = Origin(layer="template", why=f"template {template.name}", source=template.source)
        put(name, value, origin)
    for name, value in request.env.items():
        if name in LAUNCH_SETS:
            context.problems.append(f"env {name}: the launch sets it for every process; leave it out")
        if name in made:
            context.finding(
                "user-variable",
                "CONTRADICTION",
                "note",
                f"your {name}={value!r} replaces {made[name].value!r} ({made[name].origin.why})",
                evidence=made[name].origin.source,
            )
        put(name, value, stated())
    return tuple(made.values())


def _threads(shape: Shape, template: Template) -> int | None:
    if not shape.cpus_per_task:
        return None
    per_process = shape.cpus_per_task if template.style == "per-device" else shape.cpus_per_task // shape.devices
    return max(1, per_process)
