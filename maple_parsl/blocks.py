"""Plan -> Parsl Config: blocks of the plan's shape that a workflow uses for many launches.

One worker sits in the batch shell of each block and runs the launch as a bash app. Inside a step of the
launcher, a launch of its own would wait for resources that its parent holds.
"""

from __future__ import annotations

import re
import secrets
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import parsl
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.launchers import SimpleLauncher
from parsl.providers import LocalProvider, PBSProProvider, SlurmProvider

from maple_parsl.errors import MapleError, RequestError
from maple_parsl.lease import Lease, watch
from maple_parsl.provider import check_directives, checked, walltime_of
from maple_parsl.schedulers import clusters_of, scheduler_of
from maple_parsl.shell import assigned, quote

if TYPE_CHECKING:
    from maple_parsl.plan import Plan

_SAFE_PATH = re.compile(r"/[A-Za-z0-9._/-]+")
_TEMPLATE_SELECT = "select=${nodes_per_block}:ncpus=${ncpus}${select_options}"
_STALE = "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE NODE_RANK GROUP_RANK MASTER_ADDR MASTER_PORT"
LEASE_SECONDS = 120


class LeasedExecutor(HighThroughputExecutor):  # type: ignore[misc]
    """Parsl's executor whose interchange and blocks end with the program that started them."""

    _lease: Lease | None = None

    def hold(self, lease: Lease) -> None:
        """Keep this lease from the start to the end of the executor."""
        self._lease = lease

    def start(self) -> None:
        """Start, holding the lease."""
        if self._lease:
            self._lease.start()
        super().start()
        if self._lease and self.interchange_proc:
            self._lease.guard(self.interchange_proc.pid)

    def shutdown(self, timeout: float = 10.0) -> None:
        """End, and give the lease back, so that a block that is left ends by itself."""
        try:
            super().shutdown(timeout)
        finally:
            if self._lease:
                self._lease.end()


def config(
    plan: Plan,
    *,
    run_dir: str = "runinfo",
    label: str = "maple",
    init_blocks: int = 1,
    max_blocks: int = 1,
    lease_seconds: int = LEASE_SECONDS,
    heartbeat_period: int = 15,
    heartbeat_threshold: int = 60,
    retries: int = 0,
    address: str | None = None,
    strategy_period: float = 5,
    max_idletime: float = 120.0,
) -> Any:
    """A Parsl ``Config`` with one executor whose blocks are jobs of this plan's shape.

    Args:
        plan: what a block looks like; its program is run by :func:`launch_command` in an app.
        run_dir: Parsl's folder for logs and scripts, on a file system that all nodes see.
        label: the executor's name, for ``executors=[...]`` of an app.
        init_blocks, max_blocks: blocks (jobs) asked for at once, and at most.
        lease_seconds: how long a block lives on without its driver.
        heartbeat_period, heartbeat_threshold: seconds, as in Parsl.
        retries: how often Parsl runs an app again. address: of this host as the nodes see it, by default all
            addresses are tried. strategy_period, max_idletime: seconds between looks at the blocks, and until an
            idle block is given back.
    """
    folder = Path(run_dir).absolute()
    if not _SAFE_PATH.fullmatch(str(folder)):
        raise RequestError(f"Parsl cannot work in {str(folder)!r}; choose a run_dir of letters, digits and . _ / -")
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,40}", label):
        raise RequestError(f"{label!r} is not a name for an executor")
    checked("account", plan.account)
    checked("queue", plan.queue)
    check_directives(plan)
    path = folder / f"lease-{label}-{secrets.token_hex(4)}"
    start = worker_init(plan) + watch(path, plan.scheduler, clusters_of(plan), lease_seconds)
    provider = stock(plan, start, init_blocks, max_blocks)
    executor = LeasedExecutor(
        label=label,
        provider=provider,
        interchange_launch_cmd=_interchange(),
        address=address,
        max_workers_per_node=1,
        cores_per_worker=1e-6,
        cpu_affinity="none",
        heartbeat_period=heartbeat_period,
        heartbeat_threshold=heartbeat_threshold,
    )
    executor.hold(Lease(path, lambda: list(provider.resources), _cancel(plan), lease_seconds))
    return Config(
        executors=[executor],
        run_dir=str(folder),
        retries=retries,
        strategy_period=strategy_period,
        max_idletime=max_idletime,
        initialize_logging=False,
        usage_tracking=0,
    )


def _interchange() -> list[str] | None:
    """Parsl's own program beside this Python, also where that environment is not activated."""
    program = Path(sys.executable).with_name("interchange.py")
    return [str(program)] if program.exists() else None


def _cancel(plan: Plan) -> list[str]:
    clusters = clusters_of(plan)
    words = {"slurm": ["scancel", *([f"--clusters={clusters}"] if clusters else [])], "pbs": ["qdel"]}
    return words.get(plan.scheduler, ["true"])  # a block on this machine ends when the lease is gone


def worker_init(plan: Plan, path: str | None = None) -> str:
    """The plan's set-up and variables, as the start of a block.

    Args:
        path: folder with Parsl's programs, where the set-up brings none; this Python's by default, none if empty.
    """
    lines = ["trap : USR1 # the warning before the walltime would end this shell", f"unset {_STALE}"]
    for step in plan.setup:
        words = quote(f"maple: this set-up line failed: {step.line}")
        lines += [step.line, f"maple_status=$?; [ $maple_status -eq 0 ] || {{ echo {words} >&2; exit $maple_status; }}"]
    lines += [assigned(export.name, export.value) for export in plan.exports]
    if here := str(Path(sys.executable).parent) if path is None else path:
        lines.append(f'command -v process_worker_pool.py >/dev/null || export PATH="$PATH":{shlex.quote(here)}')
    return "\n".join(lines) + "\n"


def stock(plan: Plan, start: str, init_blocks: int, max_blocks: int) -> Any:
    """Parsl's own provider; the plan's directives come after those of its template and win."""
    common = {
        "launcher": SimpleLauncher(),
        "worker_init": start,
        "init_blocks": init_blocks,
        "min_blocks": 0,
        "max_blocks": max_blocks,
        "nodes_per_block": plan.shape.nodes,
    }
    if plan.scheduler == "none":
        return LocalProvider(**common)
    options = [directive.option for directive in plan.directives]
    if plan.scheduler == "slurm":
        if not any(option.startswith("--ntasks-per-node") for option in options):
            options.append(f"--ntasks-per-node={plan.shape.tasks_per_node}")  # the template's would be 1
        return SlurmProvider(
            exclusive=False,  # where the plan wants whole nodes, its directives say so
            walltime=walltime_of(plan),
            scheduler_options="\n".join(f"#SBATCH {option}" for option in options),
            clusters=clusters_of(plan),
            cmd_timeout=60,
            **common,
        )
    # PBS takes the first of two equal resources: what the template writes must be the plan's.
    rest = [option for option in options if not re.match(r"-l ?(select|walltime)=", option)]
    return _pbs_select(
        plan,
        PBSProProvider(
            walltime=walltime_of(plan), scheduler_options="\n".join(f"#PBS {option}" for option in rest), **common
        ),
    )


def _pbs_select(plan: Plan, provider: Any) -> Any:
    """Have the template ask for exactly the plan's chunks."""
    select = next((d.option for d in plan.directives if re.match(r"-l ?select=", d.option)), None)
    cores = plan.shape.cpus_per_task
    if cores:
        provider.cpus_per_node = cores * plan.shape.tasks_per_node
    if select is None:
        return provider
    chunks = re.sub(r"^-l ?select=", "", select)
    parts = re.fullmatch(r"(\d+):ncpus=(\d+)((?::[^+:]+)*)", chunks)
    if parts and int(parts[1]) == plan.shape.nodes:
        provider.cpus_per_node, provider.select_options = int(parts[2]), parts[3]
    else:  # chunks that Parsl's arguments cannot say: without ncpus, of several kinds, or one per device
        provider.template_string = provider.template_string.replace(
            _TEMPLATE_SELECT, "select=" + chunks.replace("$", "$$")
        )
    return provider


def launch_command(plan: Plan, limit_seconds: int) -> str:
    """The command of a bash app that runs the plan's launch once in a block.

    It is the plan's script without what the block's start has done already. Each launch has a run folder of its
    own below ``maple-runs`` (or ``MAPLE_RUN_DIR``), with its exit record. When the limit is over, every process
    is ended, which a ``walltime`` of the app would not do.

    Args:
        plan: a plan for a run of its own (made by :meth:`Plan.at`) keeps that run's folder.
        limit_seconds: how long the launch may take.
    """
    if limit_seconds < 1:
        raise RequestError(f"a launch cannot end within {limit_seconds} s")
    bare = plan.model_copy(update={"setup": (), "exports": (), "directives": (), "lead_seconds": 0, "requeue": False})
    script = "\n".join(row for row in bare.script.split("\n") if not row.startswith(('exec >>"$MAPLE_RUN_DIR', "#")))
    lines = ["unset MAPLE_ATTEMPT MAPLE_RESUME"]
    if plan.place is None:
        lines += ['export MAPLE_RUN_DIR="${MAPLE_RUN_DIR:-$PWD/maple-runs/$(date +%s%N)-$$}"']
    if plan.miniapp and plan.place is None:
        programs = shlex.quote(str(Path(__file__).parent / "miniapps"))
        lines += [f'mkdir -p "$MAPLE_RUN_DIR" && ln -sfn {programs} "$MAPLE_RUN_DIR/miniapps"']
    lines.append(f"exec timeout --signal=TERM --kill-after=30 {limit_seconds} bash -c {shlex.quote(script)}")
    return "\n".join(lines)


@contextmanager
def workflow(plan: Plan, **options: Any) -> Iterator[Any]:
    """Parsl loaded with :func:`config`; at the end of the ``with`` every block is cancelled."""
    made = config(plan, **options)
    provider = made.executors[0].provider
    try:
        with parsl.load(made) as kernel:
            yield kernel
    finally:
        scheduler = scheduler_of(plan)
        if plan.scheduler != "none" and provider.resources:
            states = scheduler.query(list(provider.resources))
            for job_id, info in states.items():
                if not info.state.ended:
                    with suppress(MapleError):
                        scheduler.cancel(job_id)
