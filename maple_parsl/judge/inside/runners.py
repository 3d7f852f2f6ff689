"""accelerate and deepspeed: launchers that frameworks bring."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from maple_parsl.judge.inside import options
from maple_parsl.judge.inside.model import Client, Refusal, Task
from maple_parsl.judge.inside.torch import start_workers

if TYPE_CHECKING:
    from maple_parsl.judge.inside.supervisor import Cluster

_ACCELERATE = {
    f"--{name}": name
    for name in (
        "config-file num-processes num-machines machine-rank main-process-ip main-process-port mixed-precision"
        " deepspeed-config-file zero-stage rdzv-backend rdzv-conf main-training-function gpu-ids"
        " num-cpu-threads-per-process dynamo-backend same-network max-restarts monitor-interval"
        " fsdp-sharding-strategy fsdp-auto-wrap-policy fsdp-transformer-layer-cls-to-wrap fsdp-state-dict-type"
        " fsdp-version deepspeed-multinode-launcher role log-dir fsdp-offload-params fsdp-backward-prefetch"
        " gradient-accumulation-steps gradient-clipping offload-optimizer-device"
    ).split()
}
_ACCELERATE_FLAGS = {
    f"--{name}": name for name in ("multi-gpu use-fsdp use-deepspeed no-python module cpu quiet debug use-xpu").split()
} | {"-m": "module"}
_DEEPSPEED = {
    f"--{name}": name
    for name in (
        "hostfile include exclude num-nodes num-gpus master-port master-addr node-rank launcher launcher-args ssh-port"
        " save-pid module-name min-elastic-nodes max-elastic-nodes autotuning venv-script"
    ).split()
} | {"-H": "hostfile", "-i": "include", "-e": "exclude"}
_DEEPSPEED_FLAGS = {
    f"--{name}": name for name in ("no-ssh no-ssh-check no-python module force-multi no-local-rank".split())
}


def accelerate(cluster: Cluster, client: Client) -> int | None:
    """``accelerate launch``; the count of processes is that of all machines together."""
    if client.argv[1:2] != ["launch"]:
        cluster.note("other", client)
        return 0
    try:
        given = options.read(client.argv[2:], _ACCELERATE, _ACCELERATE_FLAGS, dashes=True)
    except options.UnknownOption as error:
        raise Refusal(str(error), 2) from None
    if not given.command:
        raise Refusal("the following arguments are required: training_script", 2)
    machines = given.number("num-machines") or 1
    total = given.number("num-processes") or cluster.world["devices"]
    if total % machines:
        raise Refusal(f"{total} processes cannot be spread over {machines} machines")
    rank = given.number("machine-rank") or 0
    address = given.get("main-process-ip") or "127.0.0.1"
    port = given.get("main-process-port") or "29500"
    if given.has("no-python"):
        command = given.command
    else:
        command = ["python3", "-u", *(["-m"] if given.has("module") else []), *given.command]
    start_workers(cluster, client, command, rank, total // machines, total, address, port, "accelerate")
    return None


def deepspeed(cluster: Cluster, client: Client) -> int | None:
    """The runner of DeepSpeed: reads a hostfile and starts its launcher on every host over ssh."""
    try:
        given = options.read(client.argv[1:], _DEEPSPEED, _DEEPSPEED_FLAGS, dashes=True)
    except options.UnknownOption as error:
        raise Refusal(str(error), 2) from None
    if not given.command:
        raise Refusal("the following arguments are required: user_script", 2)
    hosts = _hosts(cluster, client, given)
    if most := given.number("num-nodes"):
        hosts = hosts[:most]
    if wanted := given.number("num-gpus"):
        hosts = [(node, min(slots, wanted)) for node, slots in hosts]
    total = sum(slots for _, slots in hosts)
    first = cluster.nodes[hosts[0][0]]["name"]
    address = given.get("master-addr") or (first if len(hosts) > 1 else "127.0.0.1")
    port = given.get("master-port") or "29500"
    program = given.command if given.has("no-python") else ["python3", "-u", *given.command]
    if given.has("no-ssh"):
        rank = given.number("node-rank") or 0
        offset = sum(slots for _, slots in hosts[:rank])
        own = hosts[rank][1] if rank < len(hosts) else hosts[0][1]
        start_workers(cluster, client, program, rank, own, total, address, port, "deepspeed", offset, list(range(own)))
        return None
    tasks, offset = [], 0
    remote = len(hosts) > 1 or given.has("force-multi")
    for place, (node, slots) in enumerate(hosts):
        env = {**cluster.world["login_env"], **_carried(client)} if remote else dict(client.env)
        for local in range(slots):
            own_env = {
                "RANK": str(offset + local),
                "LOCAL_RANK": str(local),
                "WORLD_SIZE": str(total),
                "LOCAL_SIZE": str(slots),
                "CROSS_RANK": str(place),
                "MASTER_ADDR": address,
                "MASTER_PORT": port,
                cluster.world["visible"]: ",".join(map(str, range(slots))),
            }
            words = program if given.has("no-local-rank") else [*program[:3], f"--local_rank={local}", *program[3:]]
            tasks.append(
                Task(node, words, {**env, **own_env}, client.cwd, "deepspeed", rank=offset + local, local=local)
            )
        offset += slots
    cluster.start(client, tasks)
    return None


def _hosts(cluster: Cluster, client: Client, given: options.Options) -> list[tuple[int, int]]:
    path = given.get("hostfile") or "/job/hostfile"
    try:
        with open(os.path.join(client.cwd, path), encoding="utf-8") as file:
            lines = [line.split() for line in file if line.split() and not line.startswith("#")]
    except OSError:
        return [(client.node, given.number("num-gpus") or cluster.world["devices"])]
    found = []
    for name, *rest in lines:
        node = cluster.node_named(name, client.node)
        slots = next((word.partition("=")[2] for word in rest if word.startswith("slots=")), "")
        if node is None or not slots.isdecimal():
            raise Refusal(f"Hostfile is not formatted correctly: {name} {' '.join(rest)}")
        found.append((node, int(slots)))
    if not found:
        raise Refusal("Hostfile is empty")
    return found


def _carried(client: Client) -> dict[str, str]:
    """DeepSpeed hands on variables by prefix, and those in .deepspeed_env of the working or home folder."""
    prefixes = ("NCCL", "PYTHON", "MV2", "UCX")
    env = {key: value for key, value in client.env.items() if key.startswith(prefixes) or key in ("PATH",)}
    named = client.env.get("DS_ENV_FILE", ".deepspeed_env")
    for folder in (client.env.get("HOME", "/"), client.cwd):
        try:
            with open(os.path.join(folder, named), encoding="utf-8") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        env |= {line.partition("=")[0]: line.partition("=")[2] for line in lines if "=" in line}
    return env
