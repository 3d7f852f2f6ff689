"""The launch tree: the site's launcher in its own dialect, container, framework launcher, program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from maple_parsl.compose.context import Context, Target
from maple_parsl.errors import ConfigurationError
from maple_parsl.plan import Launch, Shape
from maple_parsl.request import Parallelism
from maple_parsl.shell import Option, Var, Word, path

if TYPE_CHECKING:
    from maple_parsl.site import Launcher
    from maple_parsl.template import Style, Template

VISIBILITY = {"nvidia": "CUDA_VISIBLE_DEVICES", "amd": "ROCR_VISIBLE_DEVICES", "intel": "ZE_AFFINITY_MASK"}
_MODES: dict[Style, Literal["device", "node", "first"]] = {
    "per-device": "device",
    "per-node": "node",
    "runner": "first",
}
# Open MPI starts its remote processes with a bare environment; these carry the user's software.
_SOFTWARE = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH")
# What the watching wrapper needs in every process.
_RUN_VARIABLES = (
    "MASTER_ADDR MASTER_PORT MAPLE_RUN_ID MAPLE_RUN_DIR MAPLE_JOB_ID MAPLE_ATTEMPT MAPLE_ATTEMPT_DIR MAPLE_RESUME"
    " MAPLE_TASK MAPLE_TASKS MAPLE_LOCAL_SIZE MAPLE_RANK_VARS MAPLE_LOCAL_VARS MAPLE_SIZE_VARS"
    " MAPLE_NODE_VARS MAPLE_ONE_DEVICE MAPLE_VISIBLE_NAME MAPLE_VISIBLE_DEVICES MAPLE_POLL_LIMIT"
).split()


def launch(
    context: Context,
    target: Target,
    template: Template,
    paradigm: str,
    shape: Shape,
    degrees: Parallelism,
    exports: tuple[str, ...],
) -> Launch:
    """The whole tree; user launcher options come last and replace ours of the same name."""
    site, kind, request = context.site, target.kind, context.request
    facts = site.launchers[kind.launcher]
    per_node = template.style != "per-device"
    dialect = (facts.per_node_dialect if per_node else None) or facts.dialect
    if dialect == "jsrun":  # only retired sites have it, and they are refused before
        raise ConfigurationError(f"site {site.name}: Maple does not write jsrun launch lines")
    command = (facts.per_node_command if per_node else None) or facts.command
    carried = _carried(context, template, exports)
    if template.style == "runner":
        words: tuple[Word, ...] = ()
    else:
        words = _launcher(context, target, shape, facts, command, dialect, per_node, carried)
        words = _with_user_options(context, words)
    values: dict[str, Word | str | None] = {
        "python": interpreter(context),
        "nodes": str(shape.nodes),
        "devices": str(shape.devices),
        "world_size": str(shape.world_size),
        "node_rank": Var(var="NODE_RANK"),
        "master_addr": Var(var="MASTER_ADDR"),
        "master_port": Var(var="MASTER_PORT"),
        "run_id": Var(var="MAPLE_JOB_ID"),
        "hostfile": Var(var="MAPLE_HOSTFILE"),
        "precision": {"fp32": "no", None: "no"}.get(request.precision, request.precision),
        "dp": str(degrees.dp or 1),
        "tp": str(degrees.tp or 1),
        "pp": str(degrees.pp or 1),
        "zero_stage": str(degrees.zero_stage or 1),
    }
    start = template.paradigms[paradigm]
    framework = tuple(_fill(text, values) for text in (*template.command, *start.flags) if template.command)
    size = facts.world_size
    visible = None if facts.one_device_visible and not per_node else _visible(target, shape)
    return Launch(
        mode=_MODES[template.style],
        dialect=dialect,
        launcher=words,
        container=_container(context, target),
        framework=framework,
        program=_program(context, paradigm, degrees, start.program_args, values),
        watch_workers=bool(template.command) and template.wraps_program,
        forwards_usr1=dialect != "ibrun",
        rank=facts.rank,
        local_rank=() if per_node else facts.local_rank,
        size=size,
        node_rank=facts.node_rank,
        one_device=facts.one_device_visible and not per_node,
        visible=visible,
        hostfile=any("{hostfile}" in text for text in template.command),
        carries=carried if template.style == "runner" else (),
    )


def _launcher(
    context: Context,
    target: Target,
    shape: Shape,
    facts: Launcher,
    command: str,
    dialect: str,
    per_node: bool,
    carried: tuple[str, ...],
) -> tuple[Word, ...]:
    nodes, tasks = shape.nodes, shape.tasks_per_node
    total = str(nodes * tasks)
    cores = shape.cpus_per_task
    words: list[Word] = [command]
    own = facts.dialect == dialect
    if dialect == "local":
        return ()
    if dialect == "slurm":
        words += [f"--nodes={nodes}", f"--ntasks={total}", f"--ntasks-per-node={tasks}"]
        # srun stopped inheriting it from sbatch in Slurm 22.05: without it a task gets one core.
        words += [f"--cpus-per-task={cores}"] if cores else []
        words += ["--kill-on-bad-exit=1"]
    elif dialect == "pals":
        words += ["-n", total, "--ppn", str(tasks)]
        if not per_node:
            words += ["--cpu-bind", _binding(target, shape) or "none"]
    elif dialect == "hydra":
        words += ["-n", total, "-ppn", str(tasks)]
    elif dialect == "openmpi":
        words += ["-np", total, "--map-by", f"ppr:{tasks}:node", "--bind-to", "none"]
        if context.site.scheduler.kind == "pbs":
            words += ["--hostfile", Var(var="PBS_NODEFILE")]
        for name in carried:
            words += ["-x", name]
    elif dialect == "ibrun":
        words += ["-np", total]
    words += [*facts.flags] if own else []
    words += [*(facts.per_node_flags if per_node else facts.per_device_flags)]
    return tuple(words)


def _carried(context: Context, template: Template, exports: tuple[str, ...]) -> tuple[str, ...]:
    """Variables that must be named to reach processes started with a bare environment."""
    software = context.request.environment
    more = {
        "VIRTUAL_ENV": software.venv,
        "CONDA_PREFIX": software.conda,
        "MAPLE_MINIAPP": context.request.script is None,
        "MAPLE_HOSTFILE": any("{hostfile}" in text for text in template.command),
        "MAPLE_SAMPLE": context.request.watchdog is not None,
        "MAPLE_RUN_BIND": software.engine == "podman-hpc",
    }
    if context.request.secrets and template.style == "runner":
        context.problems.append(
            f"template {template.name} hands variables to other nodes in a file, where a secret must not stand; choose"
            " another, such as torchrun"
        )
    needed = tuple(name for name, wanted in more.items() if wanted)
    return tuple(dict.fromkeys((*_SOFTWARE, *needed, *context.request.secrets, *_RUN_VARIABLES, *exports)))


def _binding(target: Target, shape: Shape) -> str | None:
    """Binding of one process per device in PALS's words: one group of cores per local rank."""
    if not shape.whole_node:
        return None
    kind = target.kind
    groups = [device.cores for device in kind.device_map]
    if kind.cpu_bind:
        rest = kind.cpu_bind.partition(":")[2]
        groups = rest.split(":")
    if not groups or len(groups) % shape.devices:
        return None
    each = len(groups) // shape.devices  # several where whole GPUs are used instead of their tiles
    return "list:" + ":".join(",".join(groups[i : i + each]) for i in range(0, len(groups), each))


def _with_user_options(context: Context, words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Append the user's launcher options; one of ours with the same name gives way, and that is said."""
    mine: list[Word] = list(words)
    for text in context.request.launcher_args:
        name = text.split("=", 1)[0].split(" ", 1)[0]
        kept: list[Word] = []
        skip = False
        for index, item in enumerate(mine):
            if skip:
                skip = False
                continue
            if isinstance(item, str) and item.split("=", 1)[0] == name and item.startswith("-") and name != "-x":
                follower = mine[index + 1] if index + 1 < len(mine) else ""
                skip = "=" not in item and not (isinstance(follower, str) and follower.startswith("-"))
                context.finding(
                    "user-launcher-option",
                    "LAUNCHER_TASKS",
                    "note",
                    f"your {text!r} replaces {item!r} on the launcher's line",
                )
                continue
            kept.append(item)
        mine = [*kept, *(text.split(" ", 1) if text.startswith("-") and " " in text else [text])]
    if context.request.launcher_args:
        context.note("launcher_args", "stated", "stated in the request")
    return tuple(mine)


def _fill(text: str, values: dict[str, Word | str | None]) -> Word:
    """A template word with its braces filled in; a run-time value keeps being a variable."""
    if text.startswith("{") and text.endswith("}") and text.count("{") == 1:
        value = values[text[1:-1]]
        return value if value is not None else ""
    for name, value in values.items():
        mark = f"{{{name}}}"
        if mark not in text:
            continue
        if isinstance(value, Var):
            option = text.removesuffix(f"={mark}")
            return Option(option=option, var=value.var)
        text = text.replace(mark, str(value))
    return text


def interpreter(context: Context) -> Word:
    """The Python of the program's environment."""
    return path(context.request.environment.python or "python3")


def _program(
    context: Context,
    paradigm: str,
    degrees: Parallelism,
    template_args: tuple[str, ...],
    values: dict[str, Word | str | None],
) -> tuple[Word, ...]:
    request = context.request
    python: tuple[Word, ...] = (interpreter(context),)
    if request.script is not None:
        script = request.script
        if not script.endswith(".py"):
            python = ("bash",) if script.endswith(".sh") else ()
            script = script if "/" in script or python else f"./{script}"
        else:
            python = (*python, "-u")
        return (*python, path(script), *request.args, *(_fill(text, values) for text in template_args))
    arguments: list[Word] = ["--model", request.model or "", "--paradigm", paradigm]
    if paradigm == "3d":
        arguments += ["--dp", str(degrees.dp), "--pp", str(degrees.pp), "--tp", str(degrees.tp)]
    if paradigm == "zero":
        arguments += ["--zero-stage", str(degrees.zero_stage)]
    if request.precision is not None:
        arguments += ["--precision", request.precision]
    return (*python, "-u", Var(var="MAPLE_MINIAPP"), *arguments, *request.args)


def _visible(target: Target, shape: Shape) -> tuple[str, str] | None:
    kind = target.kind
    if not kind.visible_order or not shape.whole_node or kind.vendor == "none":
        return None
    return VISIBILITY[kind.vendor], ",".join(str(index) for index in kind.visible_order)


def _container(context: Context, target: Target) -> tuple[Word, ...]:
    """The command that enters the container, ending where the inner command starts."""
    stated = context.request.environment
    if stated.container is None:
        return ()
    facts = context.site.environments[target.kind.environment]
    engine = stated.engine or facts.container_engine
    if engine is None:
        context.problems.append(
            f"a container was asked for, but no engine is known for {context.site.name}; state one"
            " (apptainer, singularity, shifter, podman-hpc)"
        )
        return ()
    image = path(stated.container)
    vendor = target.kind.vendor
    flags = facts.container_flags if engine == facts.container_engine else ()
    if engine in ("apptainer", "singularity"):
        gpu = {"nvidia": "--nv", "amd": "--rocm"}.get(vendor)
        own = (gpu,) if gpu and gpu not in flags else ()
        binds: list[Word] = [part for bind in stated.binds for part in ("--bind", path(bind))]
        ours = ("--bind", Var(var="MAPLE_RUN_DIR"), "--bind", Var(var="MAPLE_WORK_DIR"))
        return (engine, "exec", *own, *flags, *binds, *ours, image)
    if engine == "shifter":
        volumes = [path(bind, "--volume=") for bind in stated.binds]
        return ("shifter", f"--image={stated.container}", *flags, *volumes)
    binds = [part for bind in stated.binds for part in ("--volume", path(bind))]
    ours = ("--volume", Var(var="MAPLE_RUN_BIND"), "--volume", Var(var="MAPLE_WORK_BIND"))
    host = ("--env-host", "--network=host", "--workdir", Var(var="MAPLE_WORK_DIR"))
    gpu_flags = ("--gpu",) if vendor == "nvidia" and "--gpu" not in flags else ()
    return ("podman-hpc", "run", "--rm", *gpu_flags, *host, *flags, *binds, *ours, image)
