"""torchrun, accelerate launch, deepspeed and python: the processes each would start.

Written from knowledge of these programs; not yet checked against their sources or compared with real ones.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from maple_parsl.judge.inside import options
from maple_parsl.judge.inside.model import Client, Refusal, Task

if TYPE_CHECKING:
    from maple_parsl.judge.inside.supervisor import Cluster

_TORCHRUN = {
    f"--{name}": name
    for name in (
        "nnodes nproc-per-node rdzv-backend rdzv-endpoint rdzv-id rdzv-conf max-restarts monitor-interval start-method"
        " role log-dir redirects tee node-rank master-addr master-port local-addr local-ranks-filter logs-specs"
        " numa-binding event-log-handler duplicate-stdout-filters duplicate-stderr-filters signals-to-handle"
    ).split()
} | {"-r": "redirects", "-t": "tee"}
_TORCHRUN_FLAGS = {
    "--standalone": "standalone",
    "--no-python": "no-python",
    "--run-path": "run-path",
    "-m": "module",
    "--module": "module",
    "--use-env": "use-env",
    "--virtual-local-rank": "virtual",
}
_LAUNCHERS = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate-launch",
    "accelerate.commands.accelerate_cli": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
}
_STATIC_PORT = 29500


def python(cluster: Cluster, client: Client) -> int | None:
    """A call of Python: a launcher, a helper of the script, or the program itself."""
    words = client.argv[1:]
    while words:
        word = words[0]
        if word == "-m" or (word.startswith("-m") and not word.startswith("--")):
            module = words[1] if word == "-m" and len(words) > 1 else word[2:]
            rest = words[2:] if word == "-m" else words[1:]
            if module in _LAUNCHERS:
                inner = Client(
                    client.pid, [_LAUNCHERS[module], *rest], client.env, client.cwd, client.node, client.task
                )
                if inner.argv[0] == "accelerate-launch":
                    inner.argv = ["accelerate", "launch", *rest]
                return cluster.handlers[inner.argv[0]](cluster, inner)
            return cluster.process(client, f"-m {module}", rest)
        if word in ("-V", "--version", "-VV"):
            cluster.say(client, "Python 3.11.0\n")
            return 0
        if word.startswith("-c"):
            return _helper(cluster, client)
        if word in ("-W", "-X"):
            words = words[2:]
        elif word.startswith("-") and word != "-":
            words = words[1:]
        else:
            break
    if not words or words[0] == "-":
        return _helper(cluster, client)
    return cluster.process(client, words[0], words[1:])


def _helper(cluster: Cluster, client: Client) -> int | None:
    """A few lines of Python: really run in the batch shell, where scripts compute ports; noted inside a launch."""
    if client.task and client.task.command != "ssh":
        return cluster.process(client, "-c", client.argv[1:])
    real = next((path for path in ("/usr/bin/python3",) if os.path.exists(path)), None)
    if real is None:
        raise Refusal("no Python on this machine to run a helper with")
    task = Task(client.node, [real, *client.argv[1:]], client.env, client.cwd, "python")
    cluster.start(client, [task])
    return None


def torchrun(cluster: Cluster, client: Client) -> int | None:
    """One agent per call; its workers start when as many agents have met as were announced."""
    try:
        given = options.read(client.argv[1:], _TORCHRUN, _TORCHRUN_FLAGS, dashes=True)
    except options.UnknownOption as error:
        raise Refusal(str(error), 2) from None
    if not given.command:
        raise Refusal("the following arguments are required: training_script", 2)
    env = client.env
    standalone = given.has("standalone")
    nodes = (given.get("nnodes") or env.get("PET_NNODES") or "1").split(":")
    if not all(part.isdecimal() for part in nodes):
        raise Refusal(f"argument --nnodes: {':'.join(nodes)!r} is not a number of nodes", 2)
    count = 1 if standalone else int(nodes[-1])
    workers = _workers(cluster, given.get("nproc-per-node") or env.get("PET_NPROC_PER_NODE") or "1")
    command = _command(given)
    backend = given.get("rdzv-backend") or env.get("PET_RDZV_BACKEND") or "static"
    endpoint = given.get("rdzv-endpoint") or env.get("PET_RDZV_ENDPOINT") or ""
    if backend == "static" and not standalone:
        address, _, port = endpoint.rpartition(":") if endpoint else ("", "", "")
        address = address or given.get("master-addr") or env.get("PET_MASTER_ADDR") or "127.0.0.1"
        port = port or given.get("master-port") or env.get("PET_MASTER_PORT") or str(_STATIC_PORT)
        rank = _integer(given.get("node-rank") or env.get("PET_NODE_RANK") or "0", "--node-rank")
        start_workers(cluster, client, command, rank, workers, count * workers, address, port, "torchrun")
        return None
    if count == 1:
        host = cluster.nodes[client.node]["name"]
        start_workers(cluster, client, command, 0, workers, workers, host, "40000", "torchrun")
        return None
    host, _, port = endpoint.rpartition(":") if ":" in endpoint else (endpoint, "", str(_STATIC_PORT))
    meeting = cluster.node_named(host, client.node)
    if meeting is None:
        raise Refusal(f"rendezvous: the address {host!r} is not one of this job's nodes", 1)
    key = f"{meeting}:{port or _STATIC_PORT}:{given.get('rdzv-id') or 'none'}:{count}"
    cluster.waiting.setdefault(key, []).append((client, (command, workers)))
    met = cluster.waiting[key]
    if len(met) == count:
        del cluster.waiting[key]
        met.sort(key=lambda item: item[0].node)
        total, first = sum(item[1][1] for item in met), cluster.nodes[met[0][0].node]["name"]
        offset = 0
        for place, (other, (words, number)) in enumerate(met):
            start_workers(cluster, other, words, place, number, total, first, "40000", "torchrun", offset)
            offset += number
    return None


def stuck(cluster: Cluster) -> None:
    """Agents that will never meet: told so, and ended."""
    for key, met in list(cluster.waiting.items()):
        for client, _ in met:
            words = f"rendezvous of {key.rpartition(':')[2]} nodes: only {len(met)} came"
            cluster.note("stuck", client, words=words)
            cluster.say(client, f"{client.argv[0]}: error: {words}\n", 2)
            cluster.reply(client, 1)
        del cluster.waiting[key]


def _integer(text: str, option: str) -> int:
    if not text.lstrip("-").isdecimal():
        raise Refusal(f"argument {option}: invalid int value: {text!r}", 2)
    return int(text)


def _workers(cluster: Cluster, text: str) -> int:
    if text in ("gpu", "auto", "xpu"):
        return int(cluster.world["devices"])
    if text == "cpu":
        return int(cluster.world["cores"])
    return _integer(text, "--nproc-per-node")


def _command(given: options.Options) -> list[str]:
    if given.has("no-python"):
        return given.command
    if given.has("module"):
        return ["python3", "-u", "-m", *given.command]
    return ["python3", "-u", *given.command]


def start_workers(
    cluster: Cluster,
    client: Client,
    command: list[str],
    node_rank: int,
    workers: int,
    total: int,
    address: str,
    port: str,
    launcher: str,
    offset: int | None = None,
    devices: list[int] | None = None,
) -> None:
    """Start one process per device on the caller's node, told its place by the variables of torch."""
    if workers < 1:
        raise Refusal("no worker to start", 2)
    first = node_rank * workers if offset is None else offset
    base = dict(client.env)
    if workers > 1:
        base.setdefault("OMP_NUM_THREADS", "1")
    tasks = []
    for local in range(workers):
        own = {
            "RANK": str(first + local),
            "LOCAL_RANK": str(local),
            "WORLD_SIZE": str(total),
            "LOCAL_WORLD_SIZE": str(workers),
            "GROUP_RANK": str(node_rank),
            "MASTER_ADDR": address,
            "MASTER_PORT": port,
            "TORCHELASTIC_RESTART_COUNT": "0",
        }
        if launcher == "deepspeed":
            del own["GROUP_RANK"], own["TORCHELASTIC_RESTART_COUNT"]
        visible = {cluster.world["visible"]: ",".join(map(str, devices))} if devices is not None else {}
        tasks.append(
            Task(
                client.node, command, {**base, **own, **visible}, client.cwd, launcher, rank=first + local, local=local
            )
        )
    cluster.start(client, tasks)
