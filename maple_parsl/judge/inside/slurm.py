"""srun and scontrol as Slurm 22.05 and newer have them: which tasks a step has, where, and what each is told.

Written from knowledge of srun, then corrected against a real Slurm 22.05, with which the tests compare it.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from maple_parsl.judge.inside import options
from maple_parsl.judge.inside.hostlist import compressed, counted, expanded
from maple_parsl.judge.inside.model import Client, Refusal, Task

if TYPE_CHECKING:
    from maple_parsl.judge.inside.supervisor import Cluster

# Read and without effect on what is started.
_TAKEN = """
    -e --error -i --input -t --time -J --job-name -A --account -p --partition -q --qos -G --gpus --gres --mem
    --mem-per-cpu --mem-per-gpu --mem-bind --mpi --threads-per-core --network --wait -W --jobid --hint --het-group
    --signal -C --constraint --comment --cpu-freq --gpu-freq -B --cores-per-socket --sockets-per-node
    --tres-per-task --cpus-per-gpu --profile --prolog --epilog --task-prolog --task-epilog
""".split()
_VALUED = {
    **dict.fromkeys(("-N", "--nodes"), "nodes"),
    **dict.fromkeys(("-n", "--ntasks"), "ntasks"),
    "--ntasks-per-node": "per-node",
    "--ntasks-per-gpu": "per-gpu",
    **dict.fromkeys(("-c", "--cpus-per-task"), "cpus"),
    **dict.fromkeys(("-w", "--nodelist"), "nodelist"),
    **dict.fromkeys(("-x", "--exclude"), "exclude"),
    **dict.fromkeys(("-m", "--distribution"), "distribution"),
    **dict.fromkeys(("-r", "--relative"), "relative"),
    **dict.fromkeys(("-D", "--chdir"), "chdir"),
    **dict.fromkeys(("-o", "--output"), "output"),
    "--export": "export",
    "--cpu-bind": "cpu-bind",
    "--gpu-bind": "gpu-bind",
    "--gpus-per-task": "gpus-per-task",
    "--gpus-per-node": "gpus-per-node",
    **dict.fromkeys(_TAKEN, "other"),
}
_FLAGS = dict.fromkeys(
    """
    -l --label -u --unbuffered --overlap --exact -s --oversubscribe -Q --quiet -v --verbose --whole --pty -O
    --overcommit --no-kill -k -E --preserve-env -Z
    """.split(),
    "flag",
)
_OPTIONAL = {"-K": "kill", "--kill-on-bad-exit": "kill", "--exclusive": "exclusive"}


def srun(cluster: Cluster, client: Client) -> int | None:
    """Start a step of the job."""
    try:
        given = options.read(client.argv[1:], _VALUED, _FLAGS, optional=_OPTIONAL, glued=True)
    except options.UnknownOption as error:
        raise Refusal(str(error)) from None
    if not given.command:
        raise Refusal("No command given to execute.")
    if client.task and client.task.command == "srun":
        raise Refusal("a step inside a step waits for ever for the resources its own step holds")
    hosts = _hosts(cluster, client, given)
    counts = _counts(client, given, len(hosts))
    tasks = _tasks(cluster, client, given, hosts, counts)
    cluster.start(client, tasks, _output(client, given))
    return None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def _hosts(cluster: Cluster, client: Client, given: options.Options) -> list[int]:
    """Indices of the step's nodes."""
    names = [node["name"] for node in cluster.nodes]
    chosen = list(range(len(names)))
    if listed := given.get("nodelist"):
        wanted = expanded(listed)
        if unknown := [name for name in wanted if name.partition(".")[0] not in names]:
            raise Refusal(f"Unable to create step: Requested node {unknown[0]} is not in this job's allocation")
        chosen = sorted(names.index(name.partition(".")[0]) for name in wanted)
    if left_out := given.get("exclude"):
        chosen = [index for index in chosen if names[index] not in expanded(left_out)]
    chosen = chosen[given.number("relative") or 0 :]
    stated = given.get("nodes") or client.env.get("SLURM_JOB_NUM_NODES") or client.env.get("SLURM_NNODES")
    most = re.match(r"(\d+)(?:-(\d+))?$", stated or "")
    count = int(most[2] or most[1]) if most else len(chosen)
    if given.has("nodelist") and not given.has("nodes"):
        count = len(chosen)
    ntasks = given.number("ntasks")
    if ntasks and not given.has("nodes") and ntasks < count:
        count = ntasks  # srun takes no more nodes than tasks
    if count > len(chosen):
        raise Refusal("Unable to create step for job: More nodes requested than the allocation has")
    return chosen[:count]


def _counts(client: Client, given: options.Options, nodes: int) -> list[int]:
    """Tasks per node. The job's own SLURM_NTASKS counts before a --ntasks-per-node of the step, as in Slurm 22.05."""
    total = given.number("ntasks") or _number(client.env.get("SLURM_NTASKS") or client.env.get("SLURM_NPROCS"))
    if total is None:
        per_node = given.number("per-node") or _number(client.env.get("SLURM_NTASKS_PER_NODE")) or 1
        total = nodes * per_node
    distribution = (given.get("distribution") or client.env.get("SLURM_DISTRIBUTION") or "block").split(":")[0]
    if distribution not in ("block", "cyclic", "arbitrary", "plane", "*"):
        raise Refusal(f"invalid -m specification {distribution}")
    counts = [0] * min(nodes, total)
    for index in range(total):  # dealt out in turn, then numbered node by node
        counts[index % len(counts)] += 1
    return counts


def _tasks(cluster: Cluster, client: Client, given: options.Options, hosts: list[int], counts: list[int]) -> list[Task]:
    world, total = cluster.world, sum(counts)
    cyclic = (given.get("distribution") or "").startswith("cyclic")
    places = [(node, local) for node, count in enumerate(counts) for local in range(count)]
    if cyclic:
        places.sort(key=lambda place: (place[1], place[0]))
    names = [cluster.nodes[hosts[node]]["name"] for node in range(len(counts))]
    cpus = given.number("cpus") or _number(client.env.get("SRUN_CPUS_PER_TASK")) or 1
    granted = world["alloc"]["cpus"]
    shared = {
        "SLURM_STEP_ID": "0",
        "SLURM_STEPID": "0",
        "SLURM_NTASKS": str(total),
        "SLURM_NPROCS": str(total),
        "SLURM_NNODES": str(len(counts)),
        "SLURM_STEP_NUM_TASKS": str(total),
        "SLURM_STEP_NUM_NODES": str(len(counts)),
        "SLURM_STEP_NODELIST": compressed(names),
        "SLURM_NODELIST": compressed(names),
        "SLURM_STEP_TASKS_PER_NODE": counted(counts),
        "SLURM_TASKS_PER_NODE": counted(counts),
        "SLURM_SRUN_COMM_HOST": cluster.nodes[0]["address"],
        "SLURM_LAUNCH_NODE_IPADDR": cluster.nodes[0]["address"],
        "SLURM_DISTRIBUTION": given.get("distribution") or client.env.get("SLURM_DISTRIBUTION") or "block",
        "SLURM_UMASK": "0022",
    }
    if given.has("cpus"):
        shared["SLURM_CPUS_PER_TASK"] = str(cpus)
    base = _exported(client, given)
    if cpus * max(counts) > granted:
        raise Refusal(
            f"Unable to create step: {max(counts)} tasks x {cpus} CPUs on a node, and the job has {granted} CPUs there"
        )
    unbound = (given.get("cpu-bind") or "").removeprefix("verbose,").removeprefix("v,") in ("none", "no")
    tasks = []
    for rank, (node, local) in enumerate(places):
        own = {
            "SLURM_PROCID": str(rank),
            "SLURM_LOCALID": str(local),
            "SLURM_NODEID": str(node),
            "SLURMD_NODENAME": names[node],
            "SLURM_CPUS_ON_NODE": str(granted),
            "SLURM_TOPOLOGY_ADDR": names[node],
            "HOSTNAME": names[node],
        }
        gpus, shown = _gpus(cluster, given, local, counts[node])
        env = {**base, **shared, **own, **shown}
        if gpus == []:
            env.pop(world["visible"], None)
        width = max(1, cpus // world["threads"])
        cores = None if unbound else list(range(local * width, (local + 1) * width))
        tasks.append(
            Task(
                node=hosts[node],
                argv=given.command,
                env=env,
                cwd=given.get("chdir") or client.cwd,
                command="srun",
                rank=rank,
                local=local,
                size=total,
                cores=cores,
                devices=gpus,
            )
        )
    return tasks


def _exported(client: Client, given: options.Options) -> dict[str, str]:
    """The caller's environment as --export lets it through."""
    stated = given.get("export") or client.env.get("SLURM_EXPORT_ENV") or "ALL"
    items = stated.split(",")
    if items[0] == "NONE" or stated == "NIL":
        kept = {key: value for key, value in client.env.items() if key.startswith("SLURM_")}
        return {**kept, "PATH": client.env.get("PATH", ""), "HOME": client.env.get("HOME", "/")}
    if "ALL" in items:
        base = dict(client.env)
    else:
        base = {key: value for key, value in client.env.items() if key.startswith("SLURM_")}
    for item in items:
        name, equals, value = item.partition("=")
        if equals:
            base[name] = value
        elif name != "ALL" and name in client.env:
            base[name] = client.env[name]
    return base


def _gpus(cluster: Cluster, given: options.Options, local: int, tasks: int) -> tuple[list[int] | None, dict[str, str]]:
    """Devices of a task (None: all of the node's), and the variable Slurm sets over the script's own."""
    world = cluster.world
    granted: int | None = world["alloc"]["gpus"]
    if granted is None:
        return None, {}
    if granted == 0:
        return [], {}
    asked = _count(given.get("gpus-per-node"))
    here = list(range(min(granted, asked) if asked is not None else granted))
    each = _count(given.get("gpus-per-task"))
    binding = given.get("gpu-bind") or ("" if each is None else "per-task") or world["gpu_bind"]
    binding = binding.removeprefix("verbose,").removeprefix("v,")
    if binding in ("none", ""):
        return here, {world["visible"]: ",".join(map(str, here))}
    width = each or 1
    if binding.startswith("single:"):
        width = 1
    if each and each * tasks > len(here):
        raise Refusal("Unable to create step: Invalid generic resource (gres) specification")
    if binding == "closest":
        own = here[local * len(here) // max(tasks, 1) :][:1] if tasks > 1 else here[:1]
    elif binding.startswith("map_gpu:"):
        listed = binding.removeprefix("map_gpu:").split(",")
        own = [int(listed[local % len(listed)].split("*")[0])]
    else:
        own = here[local * width : (local + 1) * width]
    # The others are hidden by the kernel, so the task's own are numbered from 0.
    return own, {world["visible"]: ",".join(map(str, range(len(own))))}


def _count(text: str | None) -> int | None:
    """The number in ``4`` and ``a100:4``."""
    last = (text or "").rpartition(":")[2]
    return int(last) if last.isdecimal() else None


def _output(client: Client, given: options.Options) -> str | None:
    """A file for all tasks' output, where one was named; what Slurm puts for % is left out."""
    named = given.get("output")
    if named is None:
        return None
    path = os.path.join(client.cwd, re.sub(r"%\w", "0", named))
    return path if os.path.isdir(os.path.dirname(path)) else "/dev/null"


def scontrol(cluster: Cluster, client: Client) -> int:
    """``show hostnames`` and ``show job``; others do nothing."""
    words = client.argv[1:]
    if words[:1] == ["show"] and len(words) > 1 and words[1].startswith("hostname"):
        listed = words[2] if len(words) > 2 else client.env.get("SLURM_JOB_NODELIST", "")
        if not listed:
            raise Refusal("host list is empty")
        cluster.say(client, "".join(f"{name}\n" for name in expanded(listed)))
    elif words[:2] == ["show", "hostlist"] and len(words) > 2:
        cluster.say(client, compressed(words[2].split(",")) + "\n")
    elif words[:1] == ["show"] and len(words) > 1 and words[1].startswith("job"):
        env = cluster.world["batch"]["env"]
        cluster.say(client, f"JobId={env.get('SLURM_JOB_ID')} NodeList={env.get('SLURM_JOB_NODELIST')}\n")
    else:
        cluster.note("scheduler", client)
    return 0


def squeue(cluster: Cluster, client: Client) -> int:
    """The job itself, running."""
    env = cluster.world["batch"]["env"]
    cluster.say(client, f"{env.get('SLURM_JOB_ID')} R {env.get('SLURM_JOB_NODELIST')}\n")
    return 0


def submission(cluster: Cluster, client: Client) -> int:
    """sbatch, qsub and the like: nothing is submitted from inside."""
    cluster.note("submission", client)
    raise Refusal("a job was about to submit another job")
