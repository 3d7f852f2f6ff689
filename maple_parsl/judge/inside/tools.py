"""Small commands that scripts ask about the machine, and those that enter another node or a container."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from maple_parsl.judge.inside.model import Client, Refusal, Task

if TYPE_CHECKING:
    from maple_parsl.judge.inside.supervisor import Cluster


def hostname(cluster: Cluster, client: Client) -> int:
    node = cluster.nodes[client.node]
    text = node["name"]
    if {"-f", "--fqdn", "--long"} & set(client.argv):
        text = node["fqdn"]
    elif {"-i", "--ip-address", "-I", "--all-ip-addresses"} & set(client.argv):
        text = node["address"] + (" " if "-I" in client.argv else "")
    elif {"-d", "--domain"} & set(client.argv):
        text = node["fqdn"].partition(".")[2]
    cluster.say(client, f"{text}\n")
    return 0


def nvidia_smi(cluster: Cluster, client: Client) -> int:
    if cluster.world["vendor"] != "nvidia":
        raise Refusal("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver", 9)
    count = len(client.task.inherited("devices") or []) if client.task else 0
    for index in range(count or cluster.world["devices"]):
        named = f"GPU {index}: NVIDIA (UUID: GPU-{index})" if "-L" in client.argv else str(index)
        cluster.say(client, named + "\n")
    return 0


def nproc(cluster: Cluster, client: Client) -> int:
    cluster.say(client, f"{cluster.world['cores'] * cluster.world['threads']}\n")
    return 0


def module(cluster: Cluster, client: Client) -> int:
    """The command behind the shell function of the same name."""
    words = [word for word in client.argv[1:] if not word.startswith("-")]
    cluster.note("module", client, words=words)
    return 0


def conda(cluster: Cluster, client: Client) -> int | None:
    """Without its shell hook, ``activate`` is refused as conda does; with it, the function never comes here."""
    words = client.argv[1:]
    if words[:1] == ["shell.bash"] or words[:2] == ["shell.posix", "hook"]:
        if words[1:2] == ["hook"]:
            cluster.say(client, _HOOK)
            return 0
        cluster.note("conda", client, words=words[1:])
        return 0
    if words[:1] in (["activate"], ["deactivate"]):
        raise Refusal("CondaError: Run 'conda init' before 'conda activate'")
    if words[:1] == ["run"]:
        inner = words[1:]
        while inner and inner[0].startswith("-"):
            inner = inner[2:] if inner[0] in ("-n", "-p", "--name", "--prefix") else inner[1:]
        _inner(cluster, client, inner, "conda")
        return None
    cluster.note("other", client)
    return 0


_HOOK = """conda() {
  case "$1" in
    activate) command conda shell.bash activate "${2:-base}" && export CONDA_DEFAULT_ENV="${2:-base}" \
      CONDA_PREFIX="/conda/envs/${2:-base}" CONDA_SHLVL=1 ;;
    deactivate) unset CONDA_DEFAULT_ENV CONDA_PREFIX ;;
    *) command conda "$@" ;;
  esac
}
"""


def _inner(cluster: Cluster, client: Client, words: list[str], command: str, node: int | None = None) -> None:
    if not words:
        raise Refusal("no command was given")
    place = client.node if node is None else node
    cluster.start(client, [Task(place, words, client.env, client.cwd, command)])


def ssh(cluster: Cluster, client: Client) -> int | None:
    """A command on another node, in a login environment."""
    words = client.argv[1:]
    while words and words[0].startswith("-"):
        words = words[2:] if re.fullmatch(r"-[bcDEeFIiJLlmOopQRSWw]", words[0]) else words[1:]
    if not words:
        raise Refusal("no host was given", 255)
    node = cluster.node_named(words[0].rpartition("@")[2], client.node)
    if node is None:
        raise Refusal(f"Could not resolve hostname {words[0]}", 255)
    if len(words) < 2:
        return 0
    name = cluster.nodes[node]["name"]
    env = {**cluster.world["login_env"], "HOSTNAME": name}
    task = Task(node, ["bash", "-c", " ".join(words[1:])], env, cluster.world["home"], "ssh")
    cluster.start(client, [task])
    return None


_CONTAINER_VALUES = (
    "-B --bind --env --env-file -H --home -W --workdir --overlay -S --scratch --pwd --cwd --mount --fakeroot-user"
    " --image --module --volume -V -v --workdir --network --device --entrypoint"
).split()


def container(cluster: Cluster, client: Client) -> int | None:
    """apptainer, singularity, shifter, podman-hpc: the command inside, in the same environment."""
    words = client.argv[1:]
    needs_image = client.argv[0] != "shifter"
    if needs_image:
        if words[:1] not in (["exec"], ["run"], ["shared-run"]):
            cluster.note("other", client)
            return 0
        words = words[1:]
    given: list[str] = []
    while words and words[0].startswith("-"):
        taken = 2 if words[0] in _CONTAINER_VALUES else 1
        given += words[:taken]
        words = words[taken:]
    image = words[0] if needs_image and words else None
    if needs_image:
        words = words[1:]
    cluster.note("container", client, options=given, image=image)
    _inner(cluster, client, words, client.argv[0])
    return None
