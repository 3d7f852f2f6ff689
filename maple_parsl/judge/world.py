"""The world a scheduler would give a script: nodes, variables, commands. Made of what the script asks for."""

from __future__ import annotations

from typing import Any

from maple_parsl.judge.case import Case
from maple_parsl.judge.inside.hostlist import compressed, counted
from maple_parsl.judge.inside.supervisor import RELAY
from maple_parsl.judge.sites import JudgedSite, Kind
from maple_parsl.judge.submission import Submission

HOME, WORK, BIN = "/home/user", "/project/user/job", "/judge/bin"
_JOB = "4242"
# A conda module brings the shell function with it, as the guides that show `module load conda` rely on.
_LOADED = 'case "$*" in *load*conda*) eval "$(command conda shell.bash hook)" ;; esac'
_MODULE = f'() {{ judge-module "$@"; {_LOADED}\n}}'
_PROFILE = f"""export PATH={BIN}:/usr/local/bin:/usr/bin:/bin
module() {{ judge-module "$@"; {_LOADED}; }}
ml() {{ judge-module ml "$@"; }}
"""
_ALWAYS = (
    "python python3 torchrun accelerate deepspeed hostname nvidia-smi nproc judge-module conda ssh rsh apptainer"
    " singularity shifter podman-hpc"
).split()
_MEGABYTES = 256
LONGEST = 30.0  # seconds a script may take


def nodes(site: JudgedSite, count: int) -> list[dict[str, Any]]:
    """Names and addresses; the numbers have gaps, as a scheduler's choice has."""
    found = []
    for index in range(count):
        name = site.node.format(12 + index * 3 if index % 2 else 12 + index)
        full = f"{name}.{site.domain}"
        aliases = [f"{name}-hsn0", f"{name}.{site.domain.removeprefix('hsn.cm.')}"]
        found.append({"name": name, "fqdn": full, "address": f"10.99.0.{index + 1}", "aliases": aliases})
    return found


def kind_of(case: Case, site: JudgedSite) -> Kind:
    """The kind of node of a case: the stated one, the queue's, or the site's only one."""
    queue = site.queues.get(case.queue or "")
    name = case.kind or (queue.kinds[0] if queue else next(iter(site.kinds)))
    return site.kinds.get(name) or next(iter(site.kinds.values()))


def world(case: Case, site: JudgedSite, asked: Submission, script: str, *, keep_env: bool = False) -> dict[str, Any]:
    """Everything the pretended cluster needs to know, as JSON."""
    kind = kind_of(case, site)
    machine = nodes(site, min(asked.nodes or 1, 64))
    slurm = site.scheduler == "slurm"
    commands = [*_ALWAYS, *site.mpi, *(["srun", "scontrol", "squeue", "sbatch", "salloc"] if slurm else ["qsub"])]
    queue = site.queues.get(case.queue or "")
    by_node = site.whole or not slurm or (site.queue_option == "qos" and not (queue and queue.devices))
    whole = by_node or asked.get("exclusive") is not None
    cpus = kind.cores * kind.threads
    if not whole:
        cpus = min(cpus, (asked.slots or 1) * (asked.number("cpus-per-task") or 1))
    login = {"PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin", "HOME": HOME, "USER": "user", "LOGNAME": "user"}
    login |= {"SHELL": "/bin/bash", "LANG": "C.UTF-8", "SCRATCH": "/scratch/user", "WORK": "/project/user"}
    if slurm:
        login |= {"BASH_FUNC_module%%": _MODULE, "BASH_FUNC_ml%%": '() { judge-module ml "$@"\n}'}
    gpus = asked.gpus if site.gres else None
    spool = "/var/spool/job/script"
    hosts = "127.0.0.1 localhost\n" + "".join(
        f"{node['address']} {node['fqdn']} {node['name']} {' '.join(node['aliases'])}\n" for node in machine
    )
    files = {
        spool: script,
        "/etc/profile": _PROFILE,
        "/etc/hosts": hosts,
        "/etc/passwd": f"user:x:0:0:user:{HOME}:/bin/bash\n",
        "/etc/group": "user:x:0:\n",
        "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
        "/var/spool/nodes": "".join(f"{node['name']}\n" * (asked.slots or 1) for node in machine),
        **{f"{BIN}/{name}": RELAY for name in commands},
        **dict.fromkeys((f"{HOME}/", f"{WORK}/", "/scratch/user/", "/var/tmp/", "/local/scratch/"), ""),
    }
    if not case.program.anywhere and not case.program.script.startswith("/"):
        files[f"{WORK}/{case.program.script}"] = "# the program\n"
    if case.venv:
        place = case.venv.replace("$SCRATCH", "/scratch/user").replace("$HOME", HOME).replace("~", HOME, 1)
        place = place if place.startswith("/") else f"{WORK}/{place}"
        files |= {f"{place}/bin/{name}": RELAY for name in ("python", "python3", "torchrun")}
        files[f"{place}/bin/activate"] = f'export VIRTUAL_ENV="{place}" PATH="{place}/bin:$PATH"\n'
    extra = _slurm_env(asked, machine, site, kind, cpus) if slurm else _pbs_env(asked)
    return {
        "scheduler": site.scheduler,
        "nodes": machine,
        "commands": commands,
        "mpi": site.mpi,
        "vendor": kind.vendor,
        "visible": kind.visible,
        "devices": kind.devices,
        "cores": kind.cores,
        "threads": kind.threads,
        "gpu_bind": site.gpu_bind,
        "alloc": {
            "cpus": cpus,
            "tasks_per_node": asked.slots,
            "gpus": gpus if gpus is not None else (0 if site.gres else None),
        },
        "login_env": login,
        "home": HOME,
        "files": files,
        "megabytes": _MEGABYTES,
        "seconds": LONGEST,
        "keep_env": keep_env,
        "outputs": ["/var/spool/output", f"{WORK}/maple-runs"],
        "batch": {
            "argv": [spool] if asked.shebang else ["/bin/bash", "-l", spool],
            "env": {**login, **extra, "HOSTNAME": machine[0]["name"]},
            "cwd": WORK if slurm else HOME,
            "output": "/var/spool/output",
        },
    }


def _pbs_env(asked: Submission) -> dict[str, str]:
    return {
        "PBS_JOBID": f"{_JOB}.pbs-server",
        "PBS_JOBNAME": asked.get("-N") or "script",
        "PBS_QUEUE": asked.get("-q") or "prod",
        "PBS_NODEFILE": "/var/spool/nodes",
        "PBS_O_WORKDIR": WORK,
        "PBS_O_HOME": HOME,
        "PBS_ENVIRONMENT": "PBS_BATCH",
        "PBS_JOBDIR": HOME,
        "PBS_NODENUM": "0",
        "PBS_TASKNUM": "1",
    }


def _slurm_env(
    asked: Submission, machine: list[dict[str, Any]], site: JudgedSite, kind: Kind, cpus: int
) -> dict[str, str]:
    count, listed = str(len(machine)), compressed([node["name"] for node in machine])
    gpus = asked.gpus if site.gres else None
    slots = asked.slots or (cpus if asked.get("exclusive") is not None else 1)
    env = {
        "SLURM_JOB_ID": _JOB,
        "SLURM_JOBID": _JOB,
        "SLURM_JOB_NODELIST": listed,
        "SLURM_NODELIST": listed,
        "SLURM_JOB_NUM_NODES": count,
        "SLURM_NNODES": count,
        "SLURM_JOB_CPUS_PER_NODE": counted([cpus] * len(machine)),
        "SLURM_CPUS_ON_NODE": str(cpus),
        "SLURM_TASKS_PER_NODE": counted([slots] * len(machine)),
        "SLURM_SUBMIT_DIR": WORK,
        "SLURM_SUBMIT_HOST": "login1",
        "SLURM_JOB_NAME": asked.get("job-name") or "script",
        "SLURM_JOB_PARTITION": asked.get("partition") or "gpu",
        "SLURM_PROCID": "0",
        "SLURM_LOCALID": "0",
        "SLURM_NODEID": "0",
        "SLURM_GTIDS": "0",
        "SLURMD_NODENAME": machine[0]["name"],
        "SLURM_CLUSTER_NAME": "cluster",
    }
    if asked.number("ntasks-per-node") is not None:
        env["SLURM_NTASKS_PER_NODE"] = str(slots)
        env["SLURM_NTASKS"] = env["SLURM_NPROCS"] = str(slots * len(machine))
    if asked.number("ntasks") is not None:
        env["SLURM_NTASKS"] = env["SLURM_NPROCS"] = str(asked.number("ntasks"))
    if asked.number("cpus-per-task") is not None:
        env["SLURM_CPUS_PER_TASK"] = str(asked.number("cpus-per-task"))
    if asked.get("gpus-per-node"):
        env["SLURM_GPUS_PER_NODE"] = asked.options["gpus-per-node"]
    if account := asked.get("account"):
        env["SLURM_JOB_ACCOUNT"] = account
    if qos := asked.get("qos"):
        env["SLURM_JOB_QOS"] = qos
    if site.gres and gpus is None and asked.get("exclusive") is not None:
        env[kind.visible] = ",".join(map(str, range(kind.devices)))  # the batch shell has them; steps get none
    if gpus:
        env["SLURM_GPUS_ON_NODE"] = str(gpus)
        env["SLURM_JOB_GPUS"] = env[kind.visible] = ",".join(map(str, range(gpus)))
    return env
