"""Plan -> batch script: deterministic, readable, every value quoted, every part saying why it is there."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from maple_parsl import job
from maple_parsl.errors import RequestError
from maple_parsl.plan import Origin, Plan
from maple_parsl.shell import Rooted, Spread, Var, Word, assigned, folded, quote

_TASK_END = "MAPLE_END_OF_TASK"
_START_END = "MAPLE_END_OF_START"
_SAMPLE_END = "MAPLE_END_OF_SAMPLE"
_PREFLIGHT_END = "MAPLE_END_OF_PREFLIGHT"
FIXED = (
    ("# --- Bookkeeping", "maple_claim"),
    ('maple_put "$MAPLE_SAMPLE"', _SAMPLE_END),
    ('maple_put "$MAPLE_RUN_DIR/bin/task.sh"', _TASK_END),
    ('maple_put "$MAPLE_RUN_DIR/bin/preflight.py"', _PREFLIGHT_END),
)
"""Parts of a script that are the same in every one: how the line before them begins, and the line after."""
# Left in the shell by an interactive session or an outer launcher, they would be read as this job's own.
_STALE = "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE NODE_RANK GROUP_RANK MASTER_ADDR MASTER_PORT"


@dataclass(frozen=True)
class ScriptLine:
    """One line of a script and the origin of what it says (None for Maple's own fixed text)."""

    text: str
    origin: Origin | None = None


def render(plan: Plan) -> str:
    """The whole script."""
    return "\n".join(part.text for part in lines(plan)) + "\n"


# What the shipped shell does, in one line each: for checks of the lines that differ from plan to plan.
_OUTLINE = {
    "batch.sh": (
        'maple_put() { cat >"$1"; }',
        "maple_claim() { :; }",
        'maple_stop() { exit "$1"; }',
        "maple_check() { :; }",
        "maple_port() { MASTER_PORT=$((20000 + RANDOM % 10000)); }",
        'maple_launch() { "$@"; }',
        'maple_preflight() { shift 2; "$@"; }',
        'maple_finish() { exit "$MAPLE_CODE"; }',
    ),
    "task.sh": ("shift", 'exec "$@"'),
    "watch.sh": (),
    "sample.sh": (":",),
    "preflight.py": ("pass",),
}


def outline(plan: Plan) -> str:
    """The script with the shipped shell, which is the same in all, reduced to what it does."""

    def short(name: str) -> tuple[ScriptLine, ...]:
        return tuple(_text(*_OUTLINE[name])) if name in _OUTLINE else _shipped(name)

    return "\n".join(part.text for part in lines(plan, short)) + "\n"


def lines(plan: Plan, shipped: Callable[[str], tuple[ScriptLine, ...]] | None = None) -> Iterator[ScriptLine]:
    """Every line with its origin; ``shipped`` stands in for the text of the shell files."""
    shipped = shipped or _shipped
    yield ScriptLine(plan.shebang)
    yield from _header(plan)
    yield from _text(
        "",
        f"# {comment(plan.title)}",
        *_cost(plan),
        f"# Written by Maple {plan.version}.",
        "# shellcheck disable=SC2317,SC2329 # functions called from traps",
        "# shellcheck disable=SC1090,SC1091,SC2016 # files of the site; what is in single quotes is meant so",
        "",
    )
    yield from _place(plan)
    yield from _text("", "# --- Bookkeeping: who owns this run, how it ended, signals")
    yield from shipped("batch.sh")
    if plan.scheduler == "none":
        yield from _text("")
        yield from shipped("local.sh")
    if plan.link:
        yield from _text("")
        yield from shipped("chain.sh")
    if plan.request.watchdog:
        yield from _text("", "# --- Watchdog")
        yield from shipped("watch.sh")
        stop = int(plan.request.watchdog_action == "stop")
        yield from _text(
            f"MAPLE_WATCHDOG={int(plan.request.watchdog)} MAPLE_WATCH_STOP={stop} MAPLE_WORLD={plan.shape.world_size}"
        )
    yield from _text("", "maple_claim")
    if plan.link:
        yield from _text("maple_chain_begin")
    yield from _text('cd "$MAPLE_WORK_DIR" || maple_stop 66 setup "no folder $MAPLE_WORK_DIR"')
    if plan.scheduler == "pbs":
        yield from _text('exec >>"$MAPLE_RUN_DIR/log.txt" 2>&1 # PBS would hold the log back until the end')
    yield from _environment(plan)
    yield from _rendezvous(plan)
    yield from _wrapper(plan, shipped)
    yield from _launch(plan)
    yield from _text("maple_finish")


def _text(*rows: str) -> Iterator[ScriptLine]:
    return (ScriptLine(row) for text in rows for row in text.split("\n"))


@functools.cache
def _shipped(name: str) -> tuple[ScriptLine, ...]:
    rows = job.text(name).rstrip("\n").split("\n")
    return tuple(_text(*(row for row in rows if not row.startswith(("# shellcheck ", "#!")))))


def comment(text: str) -> str:
    """Text that stays inside a comment, whatever it has in it."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _prefix(plan: Plan) -> str:
    return {"slurm": "#SBATCH", "pbs": "#PBS", "none": ""}[plan.scheduler]


def _header(plan: Plan) -> Iterator[ScriptLine]:
    prefix = _prefix(plan)
    if not prefix:
        return
    ours = Origin(layer="maple", why="the run is found again by this exact name")
    logs = Origin(layer="maple", why="one log, appended to after a restart")
    if plan.scheduler == "slurm":
        yield ScriptLine(f"{prefix} --job-name={plan.job_name}", ours)
        element = "/%a" if plan.array and plan.array.range else "/0" if plan.array else ""
        folder = (
            f"{directive_path(plan.place.run_dir, percent=True)}{element}/log.txt" if plan.place else "maple-%j.log"
        )
        yield ScriptLine(f"{prefix} --output={_directive_word(folder)}", logs)
        yield ScriptLine(f"{prefix} --open-mode=append", logs)
    else:
        yield ScriptLine(f"{prefix} -N {plan.job_name}", ours)
        if plan.place:
            file = "" if plan.array else "scheduler.log"  # in a folder, PBS names a file for each element
            yield ScriptLine(f"{prefix} -o {directive_path(plan.place.run_dir)}/{file}", logs)
    if plan.array and plan.array.range:
        option = "--array=" if plan.scheduler == "slurm" else "-J "
        many = Origin(layer="stated", why="one element for each set of arguments")
        yield ScriptLine(f"{prefix} {option}{plan.array.range}", many)
    for directive in plan.directives:
        yield ScriptLine(f"{prefix} {directive.option}", directive.origin)


def directive_path(path: str, percent: bool = False) -> str:
    """A path as a directive takes it; refuses what no quoting carries through a directive.

    Slurm replaces ``%``, so it is doubled; PBS has no quoting there at all.
    """
    if any(character in path for character in "\"'\\$`\n\r\0") or (not percent and any(c.isspace() for c in path)):
        raise RequestError(
            f"the run directory {path!r} has characters that cannot stand in a scheduler directive;"
            " choose another with --run-root"
        )
    return path.replace("%", "%%") if percent else path


def _directive_word(text: str) -> str:
    return f'"{text}"' if any(c.isspace() or c in ";()&|<>*?#" for c in text) else text


def _cost(plan: Plan) -> list[str]:
    if plan.node_hours is None:
        return []
    charge = f", charged x {plan.charge:g}" if plan.charge not in (None, 1) else ""
    return [f"# At most {plan.walltime} x {plan.shape.nodes} = {plan.node_hours:.2f} node-hours{charge}."]


def _place(plan: Plan) -> Iterator[ScriptLine]:
    job_id = {
        "slurm": '"${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID}"',
        "pbs": '"${PBS_JOBID-}"',
        "none": '"${MAPLE_LOCAL_ID:-local-$$}"',
    }[plan.scheduler]
    yield from _text("# --- This run", f"MAPLE_JOB_ID={job_id}")
    if plan.scheduler == "slurm":
        yield from _text("MAPLE_JOB_ID=${MAPLE_JOB_ID:-${SLURM_JOB_ID-}}")
    if plan.scheduler != "none":
        name = "sbatch" if plan.scheduler == "slurm" else "qsub"
        yield from _text(
            f'[ -n "$MAPLE_JOB_ID" ] || {{ echo "maple: not inside a job; submit this with {name}" >&2; exit 64; }}'
        )
    submit_dir = {"slurm": "${SLURM_SUBMIT_DIR:-$PWD}", "pbs": "${PBS_O_WORKDIR:-$PWD}", "none": "$PWD"}
    base = submit_dir[plan.scheduler]
    if plan.place:
        run_id, run_dir = quote(plan.place.run_id), quote(plan.place.run_dir)
        work_dir = quote(plan.place.work_dir)
    else:
        run_id, run_dir = '"$MAPLE_JOB_ID"', f'"${{MAPLE_RUN_DIR:-{base}/maple-runs/$MAPLE_JOB_ID}}"'
        work_dir = f'"{base}"'
    if plan.array:
        yield from _elements(plan)
        run_id, run_dir = f"{run_id}-$MAPLE_ELEMENT", f"{run_dir}/$MAPLE_ELEMENT"
    hosts = {
        "slurm": '"${SLURM_JOB_NODELIST-}"',
        "pbs": '''"$(awk '!seen[$1]++ { printf "%s%s", (n++ ? "," : ""), $1 }' "$PBS_NODEFILE")"''',
        "none": '"$(uname -n)"',
    }[plan.scheduler]
    timer = 0
    if plan.warns_itself and plan.lead_seconds and plan.walltime:
        timer = int(plan.walltime) - plan.lead_seconds
    yield from _text(
        f"MAPLE_RUN_ID={run_id}",
        f"MAPLE_RUN_DIR={run_dir}",
        f"MAPLE_WORK_DIR={work_dir}",
        f"MAPLE_HOSTS={hosts}",
        f"MAPLE_REQUEUE={int(plan.requeue and plan.scheduler == 'slurm')} MAPLE_LEAD={plan.lead_seconds}"
        f" MAPLE_TIMER={timer} MAPLE_FORWARD_USR1={int(plan.launch.forwards_usr1)}",
        "export MAPLE_JOB_ID MAPLE_RUN_ID MAPLE_RUN_DIR MAPLE_WORK_DIR",
    )
    if plan.link:
        yield from _text(
            f"MAPLE_CHAIN={quote(plan.link.chain)} MAPLE_CHAIN_DIR={quote(plan.link.folder)}"
            f" MAPLE_LINK={plan.link.number} MAPLE_LINKS={plan.link.of}",
            f"MAPLE_RESUME={int(plan.link.number > 1)}",
        )
    elif plan.resumes:
        yield from _text("MAPLE_RESUME=1 # an earlier attempt left checkpoints")


def _elements(plan: Plan) -> Iterator[ScriptLine]:
    """Which element of the array this is, and its own arguments."""
    assert plan.array
    index = {"slurm": "SLURM_ARRAY_TASK_ID", "pbs": "PBS_ARRAY_INDEX", "none": "MAPLE_ELEMENT"}[plan.scheduler]
    yield from _text(f"export MAPLE_ELEMENT=${{{index}:-0}}", "case $MAPLE_ELEMENT in")
    for number, params in enumerate(plan.array.params):
        yield from _text(f"  {number}) MAPLE_PARAMS=({' '.join(quote(word) for word in params)}) ;;")
    yield from _text('  *) echo "maple: this script has no element $MAPLE_ELEMENT" >&2; exit 64 ;;', "esac")


def _environment(plan: Plan) -> Iterator[ScriptLine]:
    yield from _text("", "# --- Environment", f"unset {_STALE}")
    for step in plan.setup:
        yield ScriptLine(step.line, step.origin)
        yield ScriptLine(f"maple_check $? {quote(step.line)}", step.origin)
    if plan.setup:
        yield from _text("set +eu # a set-up line may have asked for it")
    previous = ""
    for export in plan.exports:
        why = export.origin.why
        if why != previous:
            yield ScriptLine(f"# {why}", export.origin)
            previous = why
        yield ScriptLine(assigned(export.name, export.value), export.origin)


def _rendezvous(plan: Plan) -> Iterator[ScriptLine]:
    origin = plan.rendezvous.origin
    yield from _text("", "# --- Rendezvous: where rank 0 listens, the same on every node")
    if plan.scheduler != "none":
        count = "${SLURM_JOB_NUM_NODES:-0}" if plan.scheduler == "slurm" else '$(sort -u "$PBS_NODEFILE" | wc -l)'
        yield from _text(
            f"MAPLE_GRANTED={count}",
            f'[ "$MAPLE_GRANTED" -eq {plan.shape.nodes} ] ||'
            f' maple_stop 65 allocation "this launch needs {plan.shape.nodes} nodes and has $MAPLE_GRANTED"',
        )
    yield ScriptLine(f"MASTER_ADDR={plan.rendezvous.expression}", origin)
    if plan.rendezvous.suffix:
        yield ScriptLine(f"MASTER_ADDR=${{MASTER_ADDR%%.*}}{quote(plan.rendezvous.suffix)}", origin)
    yield ScriptLine(
        '[ -n "$MASTER_ADDR" ] || maple_stop 65 allocation "the first node of this job cannot be told"',
        origin,
    )
    yield from _text("maple_port", "export MASTER_ADDR MASTER_PORT")
    if plan.launch.hostfile:
        hosts = {
            "slurm": 'scontrol show hostnames "$SLURM_JOB_NODELIST"',
            "pbs": "awk '!seen[$1]++ { print $1 }' \"$PBS_NODEFILE\"",
            "none": "echo localhost",
        }[plan.scheduler]
        yield from _text(
            'export MAPLE_HOSTFILE="$MAPLE_RUN_DIR/hostfile"',
            f"{hosts} | sed 's/$/ slots={plan.shape.devices}/' | maple_put \"$MAPLE_HOSTFILE\"",
        )


def _wrapper(plan: Plan, shipped: Callable[[str], tuple[ScriptLine, ...]]) -> Iterator[ScriptLine]:
    launch = plan.launch
    name, devices = launch.visible or ("", "")
    yield from _text("", "# --- What each started process runs")
    if plan.miniapp:
        folder = "${MAPLE_RUN_DIR%/*}" if plan.array else "$MAPLE_RUN_DIR"
        yield from _text(f'export MAPLE_MINIAPP="{folder}/miniapps/train.py"')
    if launch.container and launch.container[0] == "podman-hpc":
        yield from _text(
            'export MAPLE_RUN_BIND="$MAPLE_RUN_DIR:$MAPLE_RUN_DIR" MAPLE_WORK_BIND="$MAPLE_WORK_DIR:$MAPLE_WORK_DIR"'
        )
    tasks = plan.shape.nodes * plan.shape.tasks_per_node
    yield from _text(
        f"export MAPLE_TASKS={tasks} MAPLE_LOCAL_SIZE={plan.shape.tasks_per_node}"
        f" MAPLE_ONE_DEVICE={int(launch.one_device)} MAPLE_POLL_LIMIT={int(not launch.forwards_usr1)}",
        f'export MAPLE_RANK_VARS="{" ".join(launch.rank)}" MAPLE_LOCAL_VARS="{" ".join(launch.local_rank)}"',
        f'export MAPLE_SIZE_VARS="{" ".join(launch.size)}" MAPLE_NODE_VARS="{" ".join(launch.node_rank)}"',
        f'export MAPLE_VISIBLE_NAME="{name}" MAPLE_VISIBLE_DEVICES="{devices}"',
    )
    yield from _text(f"maple_put \"$MAPLE_RUN_DIR/bin/task.sh\" <<'{_TASK_END}'")
    yield from shipped("task.sh")
    yield from _text(_TASK_END)
    if plan.request.watchdog:
        yield from _text(
            'export MAPLE_SAMPLE="$MAPLE_RUN_DIR/bin/sample.sh"',
            f"maple_put \"$MAPLE_SAMPLE\" <<'{_SAMPLE_END}'",
        )
        yield from shipped("sample.sh")
        yield from _text(_SAMPLE_END)
    if plan.preflight:
        yield from _text(f"maple_put \"$MAPLE_RUN_DIR/bin/preflight.py\" <<'{_PREFLIGHT_END}'")
        yield from shipped("preflight.py")
        yield from _text(_PREFLIGHT_END)
    if launch.framework and launch.mode == "node":
        # In a file, so that each node fills in its own NODE_RANK; here it would be the first node's for all.
        for _, program, name in _programs(plan):
            rest: tuple[Word, ...] = (Spread(array="@"),) if _varies(plan, program) else ()
            yield from _text(
                f"maple_put \"$MAPLE_RUN_DIR/bin/{name}\" <<'{_START_END}'",
                *folded(("exec", *launch.container, *launch.framework, *_worker(plan, program), *rest)),
                _START_END,
            )


def _programs(plan: Plan) -> Iterator[tuple[tuple[Word, ...], tuple[Word, ...], str]]:
    """What is launched, in order: the function that does it, the program, the name of its start file."""
    trial = plan.preflight
    if trial:
        yield ("maple_preflight", trial.action, str(trial.seconds)), trial.program, "preflight.sh"
    if not trial or trial.action != "only":
        yield ("maple_launch",), plan.launch.program, "start.sh"


def _worker(plan: Plan, program: tuple[Word, ...]) -> tuple[Word, ...]:
    """The program, watched where the framework's launcher takes any executable."""
    watch: tuple[Word, ...] = ("sh", Var(var="MAPLE_TASK"), "worker") if plan.launch.watch_workers else ()
    if plan.launch.framework and not plan.launch.watch_workers and program and program[0] != "bash":
        program = program[2:] if program[1:2] == ("-u",) else program[1:]
    return (*watch, *program)


def _launch(plan: Plan) -> Iterator[ScriptLine]:
    launch = plan.launch
    starter = launch.launcher
    if launch.mode != "first" and launch.dialect == "local":
        starter = ("maple_local", str(plan.shape.tasks_per_node))
    yield from _text(
        "",
        "# --- Launch",
        'export MAPLE_TASK="$MAPLE_RUN_DIR/bin/task.sh"',
    )
    if launch.dialect == "openmpi":
        yield from _text(
            'export LD_LIBRARY_PATH="${LD_LIBRARY_PATH-}" PYTHONPATH="${PYTHONPATH-}" # -x complains of unset ones'
        )
    if launch.carries:
        yield from _text(
            "# The framework's launcher reaches the other nodes over ssh, which carries no variables.",
            'export DS_ENV_FILE="$MAPLE_RUN_DIR/carried.env"',
            f"for MAPLE_NAME in {' '.join(launch.carries)}; do",
            '  [ -z "${!MAPLE_NAME-}" ] || printf \'%s=%s\\n\' "$MAPLE_NAME" "${!MAPLE_NAME}"',
            'done | maple_put "$DS_ENV_FILE"',
        )
    for function, program, name in _programs(plan):
        rows = folded((*function, *starter), indent="  ")
        inner = folded(_inner(plan, program, name))
        yield from _text(*(row for row in rows[:-1]), rows[-1] + " \\", *("  " + row for row in inner))


def _inner(plan: Plan, program: tuple[Word, ...], name: str) -> tuple[Word, ...]:
    """What the site's launcher starts."""
    launch = plan.launch
    task: tuple[Word, ...] = ("sh", Var(var="MAPLE_TASK"))
    rest: tuple[Word, ...] = (Spread(array="MAPLE_PARAMS"),) if _varies(plan, program) else ()
    if launch.mode == "node" and launch.framework:
        return (*task, "node", "sh", Rooted(root="MAPLE_RUN_DIR", rest=f"/bin/{name}"), *rest)
    if launch.mode == "first":
        return (*launch.container, *launch.framework, *_worker(plan, program), *rest)
    return (*task, "device", *launch.container, *program, *rest)


def _varies(plan: Plan, program: tuple[Word, ...]) -> bool:
    """Whether each element of the array gives the program words of its own; a preflight gets none."""
    return plan.array is not None and program == plan.launch.program
