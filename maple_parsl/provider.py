"""Plan -> Parsl provider and launcher. The only module, with :mod:`maple_parsl.blocks`, that imports Parsl.

A run's job is one Parsl block whose script is the plan's, byte for byte. Parsl's own templates force a job name,
output paths and ``ncpus=1``, and its launchers write the command through an unquoted here-document, so that
``$SLURM_PROCID`` would be the first node's for all.
"""

from __future__ import annotations

import re
import shlex
import shutil
import tempfile
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parsl.jobs.states import JobState as ParslState
from parsl.jobs.states import JobStatus
from parsl.launchers.base import Launcher
from parsl.providers import LocalProvider, PBSProProvider, SlurmProvider

from maple_parsl.errors import RequestError
from maple_parsl.schedulers import JobState, commands
from maple_parsl.schedulers.local import Local

if TYPE_CHECKING:
    from maple_parsl.plan import Plan

__all__ = [
    "VerbatimLauncher",
    "checked",
    "config",
    "endpoint_config",
    "launch_command",
    "provider",
    "walltime_of",
    "workflow",
]

_SAFE_PATH = re.compile(r"/[A-Za-z0-9._/-]+")
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]*")
_SUBMIT_DEADLINE = 60


class VerbatimLauncher(Launcher):  # type: ignore[misc]
    """Leaves the command as it is: who starts where is the plan's business."""

    def __call__(self, command: str, tasks_per_node: int, nodes_per_block: int, script_dir: str = "") -> str:
        return command


class _Verbatim:
    """What is sent is the plan's script; how it is sent is Maple's way to run a command.

    Parsl pastes paths and names into a line for a shell; here no shell reads that line.
    """

    plan: Plan
    script_dir: str
    cmd_timeout: float

    def _write_submit_script(self, template: str, script_filename: str, job_name: str, configs: Any) -> None:
        Path(script_filename).write_bytes(self.plan.script.encode())

    def execute_wait(self, cmd: str, timeout: float | None = None) -> tuple[int, str, str]:
        """Run one of Parsl's commands with a clean environment and a deadline."""
        if cmd == "sacct -X":  # Parsl's question whether there is accounting: a submission must not wait for that
            return 1, "", "not asked"
        answer = commands.run(shlex.split(cmd), deadline=timeout or self.cmd_timeout, locale=None)
        return answer.code, answer.out, answer.err

    def clean(self) -> None:
        """Remove the copy of the script that Parsl wrote; the scheduler has its own."""
        for path in Path(self.script_dir).glob(f"{self.plan.job_name}.*"):
            path.unlink(missing_ok=True)


class MapleSlurmProvider(_Verbatim, SlurmProvider):  # type: ignore[misc]
    """Parsl's Slurm provider, sending a plan's script."""

    def __init__(self, plan: Plan, script_dir: str, launcher: Launcher, **options: Any) -> None:
        from maple_parsl.schedulers import clusters_of

        self.plan = plan
        SlurmProvider.__init__(
            self,
            account=checked("account", plan.account),
            clusters=clusters_of(plan),
            exclusive="--exclusive" in {directive.option for directive in plan.directives},
            nodes_per_block=plan.shape.nodes,
            cores_per_node=None,
            walltime=walltime_of(plan),
            launcher=launcher,
            **{"cmd_timeout": _SUBMIT_DEADLINE, **options},
        )
        self.script_dir = script_dir


class MaplePBSProProvider(_Verbatim, PBSProProvider):  # type: ignore[misc]
    """Parsl's PBS Pro provider, sending a plan's script; nothing on the qsub line can contradict it."""

    def __init__(self, plan: Plan, script_dir: str, launcher: Launcher, **options: Any) -> None:
        self.plan = plan
        cores = plan.shape.cpus_per_task
        PBSProProvider.__init__(
            self,
            nodes_per_block=plan.shape.nodes,
            **({"cpus_per_node": cores * plan.shape.tasks_per_node} if cores else {}),
            walltime=walltime_of(plan),
            launcher=launcher,
            **{"cmd_timeout": _SUBMIT_DEADLINE, **options},
        )
        self.script_dir = script_dir


class MapleLocalProvider(LocalProvider):  # type: ignore[misc]
    """Parsl's local provider, whose jobs outlive this process and are found again."""

    def __init__(self, plan: Plan, script_dir: str, launcher: Launcher, **options: Any) -> None:
        self.plan = plan
        LocalProvider.__init__(self, launcher=launcher, **options)
        self.script_dir = script_dir

    def _write_submit_script(self, script_string: str, script_filename: str) -> bool:
        Path(script_filename).write_bytes(self.plan.script.encode())
        return True

    def submit(self, command: str, tasks_per_node: int, job_name: str = "maple") -> str:
        """Start the plan's script and return its id."""
        path = Path(self.script_dir, f"{job_name}.{time.time()}.sh")
        self._write_submit_script(command, str(path))
        run_dir = self.plan.place.run_dir if self.plan.place else ""
        job_id = Local().start(path, self.plan.job_name, run_dir)
        self.resources[job_id] = {"job_id": job_id, "status": JobStatus(ParslState.RUNNING), "script_path": str(path)}
        return job_id

    def status(self, job_ids: list[str]) -> list[JobStatus]:
        """As the processes and their exit records say."""
        for job_id, info in Local().query(job_ids).items():
            state = _PARSL_STATES.get(info.state, ParslState.FAILED)
            self.resources[job_id]["status"] = JobStatus(state, exit_code=info.exit_code, message=info.explanation)
        return [self.resources[job_id]["status"] for job_id in job_ids]

    def cancel(self, job_ids: list[str]) -> list[bool]:
        """End the jobs."""
        for job_id in job_ids:
            Local().cancel(job_id)
        return [True for _ in job_ids]

    def clean(self) -> None:
        """Nothing: the script is read as it runs."""


_PARSL_STATES = {
    JobState.pending: ParslState.PENDING,
    JobState.running: ParslState.RUNNING,
    JobState.done: ParslState.COMPLETED,
    JobState.cancelled: ParslState.CANCELLED,
    JobState.unknown: ParslState.MISSING,
}


def provider(plan: Plan, script_dir: str | None = None, launcher: Launcher | None = None, **options: Any) -> Any:
    """The Parsl provider whose ``submit`` sends :attr:`Plan.script` byte for byte.

    Args:
        plan: what is submitted.
        script_dir: where Parsl writes the script before it is sent; a private temporary folder by default, which
            goes with the provider.
        launcher: :class:`VerbatimLauncher` by default; its result is not part of the script.
        options: further arguments of Parsl's provider, such as ``cmd_timeout`` or ``max_blocks``.

    Raises:
        RequestError: an account, queue or directive with characters that no scheduler takes.
    """
    checked("account", plan.account)
    checked("queue", plan.queue)
    check_directives(plan)
    kinds = {"slurm": MapleSlurmProvider, "pbs": MaplePBSProProvider, "none": MapleLocalProvider}
    folder, temporary = safe_folder(script_dir)
    try:
        made = kinds[plan.scheduler](plan, folder, launcher or VerbatimLauncher(), **options)
    except BaseException:
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)
        raise
    if temporary:
        weakref.finalize(made, shutil.rmtree, temporary, ignore_errors=True)
    return made


def safe_folder(script_dir: str | None) -> tuple[str, str | None]:
    """A path that means the folder to any shell, and the temporary folder made for that, if any."""
    if script_dir is not None:
        path = Path(script_dir).absolute()
        if not path.is_dir():
            raise RequestError(f"there is no folder {script_dir!r} for the submit script")
        if _SAFE_PATH.fullmatch(str(path)):
            return str(path), None
    root = tempfile.gettempdir()
    temporary = tempfile.mkdtemp(prefix="maple-", dir=root if _SAFE_PATH.fullmatch(root) else "/tmp")
    if script_dir is None:
        return temporary, temporary
    link = Path(temporary, "scripts")
    link.symlink_to(Path(script_dir).absolute(), target_is_directory=True)
    return str(link), temporary


def checked(what: str, name: str | None) -> str | None:
    """An account or queue that is a plain name; Parsl pastes it into a shell."""
    if name is not None and not _SAFE_NAME.fullmatch(name):
        raise RequestError(f"{what} {name!r} is not a name that a scheduler takes")
    return name


def check_directives(plan: Plan) -> None:
    """Each directive is one line of printable text."""
    for text in (plan.job_name, *(directive.option for directive in plan.directives)):
        if not text.isprintable():
            raise RequestError(f"the directive {text!r} is not one line of text")


def walltime_of(plan: Plan) -> str:
    """The walltime as HH:MM:SS, also where it stands in a directive of the user's."""
    from maple_parsl.walltime import Walltime

    if plan.walltime is not None:
        return str(plan.walltime)
    for directive in plan.directives:
        match = re.match(r"(?:--time[= ]|-t ?|-l ?walltime=)(\S+)", directive.option)
        if match:
            try:
                return str(Walltime.parse(match[1]))
            except RequestError:
                minutes = match[1]
                if plan.scheduler == "slurm" and minutes.isdecimal():
                    return str(Walltime(int(minutes) * 60))
    return "00:30:00"


def config(plan: Plan, **options: Any) -> Any:
    """A whole Parsl ``Config`` whose blocks have this plan's shape, see :func:`maple_parsl.blocks.config`."""
    from maple_parsl import blocks

    return blocks.config(plan, **options)


def endpoint_config(plan: Plan) -> dict[str, Any]:
    """Values for a multi-user endpoint, see :func:`maple_parsl.endpoint_config.endpoint_config`."""
    from maple_parsl import endpoint_config as made

    return made.endpoint_config(plan)


def launch_command(plan: Plan, limit_seconds: int) -> str:
    """The command an app runs in a block, see :func:`maple_parsl.blocks.launch_command`."""
    from maple_parsl import blocks

    return blocks.launch_command(plan, limit_seconds)


def workflow(plan: Plan, **options: Any) -> Any:
    """Parsl loaded with :func:`config` for the length of a ``with``, see :func:`maple_parsl.blocks.workflow`."""
    from maple_parsl import blocks

    return blocks.workflow(plan, **options)
