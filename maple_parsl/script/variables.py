"""Variables the scheduler and the launchers set, as far as the directives tell their values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property

from maple_parsl.script import pbs
from maple_parsl.script.model import Script
from maple_parsl.script.values import Value, const, sym

# Set for each process by a launcher: value differs between processes.
PER_TASK = frozenset(
    "SLURM_PROCID SLURM_LOCALID SLURM_NODEID SLURM_TASK_PID SLURM_GTIDS SLURMD_NODENAME SLURM_TOPOLOGY_ADDR"
    " PMI_RANK PMI_LOCAL_RANK PMI_ID PMI_FD PMIX_RANK PALS_RANKID PALS_LOCAL_RANKID PALS_NODEID MPI_LOCALRANKID"
    " OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_LOCAL_RANK OMPI_COMM_WORLD_NODE_RANK MV2_COMM_WORLD_RANK"
    " MV2_COMM_WORLD_LOCAL_RANK MPI_RANKID JSM_NAMESPACE_RANK JSM_NAMESPACE_LOCAL_RANK ALPS_APP_PE PBS_NODENUM"
    " PBS_TASKNUM PBS_VNODENUM FLUX_TASK_RANK FLUX_TASK_LOCAL_ID HOSTNAME".split()
)
# Set by a framework's launcher in each process it starts.
PER_WORKER = frozenset("RANK LOCAL_RANK GROUP_RANK ROLE_RANK NODE_RANK".split())
# The number of processes, set by launchers for their processes only.
SIZES = frozenset("PMI_SIZE PMI_LOCAL_SIZE OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_SIZE MV2_COMM_WORLD_SIZE"
                  " PALS_LOCAL_SIZE MPI_LOCALNRANKS JSM_NAMESPACE_SIZE".split())  # fmt: skip
_ZERO = frozenset("SLURM_PROCID SLURM_LOCALID SLURM_NODEID".split())
_JOB_ID = frozenset("SLURM_JOB_ID SLURM_JOBID PBS_JOBID LSB_JOBID COBALT_JOBID SLURM_ARRAY_JOB_ID".split())
_OPAQUE = (
    "SLURM_SUBMIT_DIR PBS_O_WORKDIR SLURM_JOB_NAME SLURM_ARRAY_TASK_ID PBS_ARRAY_INDEX SLURM_CPUS_ON_NODE"
    " SLURM_JOB_CPUS_PER_NODE SLURM_CLUSTER_NAME SLURM_JOB_PARTITION PBS_JOBNAME PBS_QUEUE PBS_ENVIRONMENT"
).split()
_GPU_TYPED = re.compile(r"(?:gres[/:])?gpu(?::[A-Za-z][\w.-]*)?(?:[:=](\d+))?\Z")


def gres_gpus(text: str | None) -> int | None:
    """The number of GPUs in ``gpu:4``, ``gpu:a100:4``, ``gres/gpu:4`` or a list with one of these."""
    for piece in (text or "").split(","):
        match = _GPU_TYPED.match(re.sub(r"\(.*", "", piece.strip()))
        if match:
            return int(match[1] or 1) if len(match[1] or "1") < 9 else None
    return None


def typed_count(text: str | None) -> int | None:
    """The number in ``4``, ``a100:4``."""
    last = (text or "").rpartition(":")[2]
    return int(last) if last.isascii() and last.isdigit() and len(last) < 9 else None


def expand_nodes(text: str | None) -> tuple[int | None, int | None]:
    """Fewest and most nodes of ``4``, ``2-4``, ``1k``."""
    match = re.match(r"(\d{1,8})(k?)(?:-(\d{1,8})(k?))?\Z", (text or "").strip())
    if not match:
        return None, None
    low = int(match[1]) * (1024 if match[2] else 1)
    return low, int(match[3]) * (1024 if match[4] else 1) if match[3] else low


class JobShape:
    """What the directives say of the job's size."""

    def __init__(self, script: Script) -> None:
        self.script = script

    def text(self, name: str) -> str | None:
        found = self.script.directive(name)
        return found.value if found and not found.variables else None

    def count(self, name: str) -> int | None:
        found = self.script.directive(name)
        return found.number if found else None

    @cached_property
    def nodes(self) -> int | None:
        """Nodes of the job, where certain."""
        low, high = self.node_range
        return low if low == high else None

    @cached_property
    def node_range(self) -> tuple[int | None, int | None]:
        scheduler = self.script.scheduler
        if scheduler == "slurm":
            if self.script.directive("--nodes"):
                return expand_nodes(self.text("--nodes"))
            tasks, per_node = self.count("--ntasks"), self.count("--ntasks-per-node")
            if tasks and per_node:
                return -(-tasks // per_node), -(-tasks // per_node)
            if not self.script.directives or tasks not in (None, 1):
                return None, None
            return (1, 1) if tasks == 1 else (None, None)
        if scheduler == "pbs":
            count = self.request.count if self.request else None
            return count, count
        if scheduler in ("lsf", "cobalt"):
            count = self.count("nodes")
            return count, count
        return None, None

    @cached_property
    def request(self) -> pbs.Request | None:
        return pbs.request(self.script) if self.script.scheduler == "pbs" else None

    @cached_property
    def per_node(self) -> int | None:
        """Tasks per node that the directives state (PBS: ``mpiprocs``, ``ppn``)."""
        if self.script.scheduler == "slurm":
            stated = self.count("--ntasks-per-node")
            if stated:
                return stated
            tasks = self.count("--ntasks")
            if tasks and self.nodes and tasks % self.nodes == 0:
                return tasks // self.nodes
            return None
        if self.request and len(self.request.chunks) == 1:
            return self.request.chunks[0].number("mpiprocs", "ppn")
        return None

    @cached_property
    def tasks(self) -> int | None:
        if self.script.scheduler == "slurm":
            stated = self.count("--ntasks")
            if stated:
                return stated
        return self.nodes * self.per_node if self.nodes and self.per_node else None

    @cached_property
    def gpus_per_node(self) -> int | None:
        """GPUs per node that the directives ask for."""
        if self.script.scheduler == "slurm":
            for name in ("--gpus-per-node",):
                found = typed_count(self.text(name))
                if found:
                    return found
            found = gres_gpus(self.text("--gres"))
            if found:
                return found
            total = typed_count(self.text("--gpus"))
            if total and self.nodes and total % self.nodes == 0:
                return total // self.nodes
            each = typed_count(self.text("--gpus-per-task"))
            return each * self.per_node if each and self.per_node else None
        if self.request and len(self.request.chunks) == 1:
            return self.request.chunks[0].number("ngpus", "gpus")
        return None

    @cached_property
    def cpus_per_task(self) -> int | None:
        return self.count("--cpus-per-task") if self.script.scheduler == "slurm" else None


def scheduler_variables(shape: JobShape) -> Mapping[str, Value]:
    """Values the batch shell finds set."""
    found: dict[str, Value] = {name: sym("job_id", name, 1) for name in _JOB_ID}
    if shape.script.scheduler == "slurm" and not shape.script.directive("--array"):
        found["SLURM_ARRAY_JOB_ID"] = found["SLURM_ARRAY_TASK_ID"] = sym("unset", "SLURM_ARRAY_JOB_ID")
    low, high = shape.node_range
    count = const(low) if low is not None and low == high else sym("node_count", "", low or 1, high)
    for name in ("SLURM_NNODES", "SLURM_JOB_NUM_NODES", "PBS_NUM_NODES", "COBALT_JOBSIZE"):
        found[name] = count
    for name in ("SLURM_JOB_NODELIST", "SLURM_NODELIST"):
        found[name] = sym("nodelist", name)
    found["PBS_NODEFILE"] = sym("node_file", "PBS_NODEFILE")
    found["COBALT_NODEFILE"] = sym("node_file", "COBALT_NODEFILE")
    found["LSB_DJOB_HOSTFILE"] = sym("node_file", "LSB_DJOB_HOSTFILE")
    found["LSB_HOSTS"] = sym("node_lines", "LSB_HOSTS")
    for name in ("SLURMD_NODENAME", "HOSTNAME", "HOST", "SLURM_TOPOLOGY_ADDR"):
        found[name] = sym("batch_host", name)
    found["SLURM_LAUNCH_NODE_IPADDR"] = sym("submit_host", "SLURM_LAUNCH_NODE_IPADDR")
    found["SLURM_SUBMIT_HOST"] = sym("submit_host", "SLURM_SUBMIT_HOST")
    found["PBS_O_HOST"] = sym("submit_host", "PBS_O_HOST")
    found["RANDOM"] = sym("random", "RANDOM", 0, 32767)
    for name in _OPAQUE:
        found.setdefault(name, sym("scheduler", name))
    for name in _ZERO:
        found[name] = sym("batch_zero", name, 0, 0)
    found.update(_slurm(shape))
    return found


def _slurm(shape: JobShape) -> dict[str, Value]:
    found: dict[str, Value] = {}
    if shape.script.scheduler != "slurm":
        return found
    tasks = shape.tasks
    stated = shape.script.directive("--ntasks") or shape.script.directive("--ntasks-per-node")
    for name in ("SLURM_NTASKS", "SLURM_NPROCS"):
        found[name] = const(tasks) if tasks else sym("task_count" if stated else "unset", name)
    for name, option in {
        "SLURM_NTASKS_PER_NODE": "--ntasks-per-node",
        "SLURM_CPUS_PER_TASK": "--cpus-per-task",
        "SLURM_GPUS_PER_NODE": "--gpus-per-node",
        "SLURM_GPUS_PER_TASK": "--gpus-per-task",
        "SLURM_GPUS": "--gpus",
        "SLURM_MEM_PER_NODE": "--mem",
    }.items():
        directive = shape.script.directive(option)
        if directive is None:
            found[name] = sym("unset", name)
        elif directive.value is not None and not directive.variables and name != "SLURM_MEM_PER_NODE":
            found[name] = const(directive.value)
        else:
            found[name] = sym("scheduler", name)
    gpus = shape.gpus_per_node
    found["SLURM_GPUS_ON_NODE"] = const(gpus) if gpus else sym("gpu_count", "SLURM_GPUS_ON_NODE")
    found["SLURM_JOB_GPUS"] = found["SLURM_STEP_GPUS"] = sym("scheduler", "SLURM_JOB_GPUS")
    nodes, per_node = shape.nodes, shape.per_node
    if nodes and per_node:
        found["SLURM_TASKS_PER_NODE"] = const(f"{per_node}(x{nodes})" if nodes > 1 else per_node)
    else:
        found["SLURM_TASKS_PER_NODE"] = sym("scheduler", "SLURM_TASKS_PER_NODE")
    return found
