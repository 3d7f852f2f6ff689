"""Commands that run another one: how many of the words are theirs."""

from __future__ import annotations

import re
from typing import Literal

from maple_parsl.script.model import Arg, Place
from maple_parsl.script.values import Value, join

Kind = Literal["shell", "env", "bind", "container", "profiler", "time", "affinity", "conda", "script", "other"]
Set = tuple[str, Value, Place]
_AFFINITY = re.compile(
    r"(set_affinity\w*|gpu_tile_compact|gpu_dev_compact|affinity\w*|select_gpu|helper_gpu|bind\w*_gpu\w*|mpi_?wrapper"
    r"|gpu_bind\w*|set_(gpu|rank)\w*|local_rank\w*|task_affinity|tacc_affinity|cpu_bind\w*)(\.sh)?\Z"
)
# name -> kind, options with a value, words of its own after the options
_SIMPLE: dict[str, tuple[Kind, str, int]] = {
    "time": ("time", "f o --format --output", 0),
    "timeout": ("time", "k s --kill-after --signal", 1),
    "nohup": ("other", "", 0),
    "nice": ("other", "n --adjustment", 0),
    "ionice": ("other", "c n p", 0),
    "stdbuf": ("other", "i o e", 0),
    "setsid": ("other", "", 0),
    "sudo": ("other", "u g", 0),
    "strace": ("profiler", "e o", 0),
    "ddtrace-run": ("profiler", "", 0),
    "unbuffer": ("other", "", 0),
    "catchsegv": ("other", "", 0),
    "numactl": ("bind", "C N m p i --cpunodebind --membind --physcpubind --interleave --preferred --localalloc=", 0),
    "taskset": ("bind", "", 1),
    "dplace": ("bind", "c e", 0),
    "hwloc-bind": ("bind", "--mempolicy", 1),
    "ibv_fork": ("other", "", 0),
    "nsys": (
        "profiler",
        "o t s w f --output --trace --sample --capture-range --stats --force-overwrite --delay"
        " --duration --cuda-memory-usage --gpu-metrics-device -x",
        0,
    ),
    "ncu": ("profiler", "o k f --set --section --kernel-name --target-processes -c", 0),
    "rocprof": ("profiler", "i o -d", 0),
    "rocprofv3": ("profiler", "d o", 0),
    "unitrace": ("profiler", "o", 0),
    "vtune": ("profiler", "r", 0),
    "py-spy": ("profiler", "o d r f", 0),
    "tau_exec": ("profiler", "T", 0),
    "torch-trace": ("profiler", "", 0),
    "shifter": ("container", "V e E --image --volume --module --env --workdir -m", 0),
    "enroot": ("container", "e m --env --mount --root --rw", 1),
    "ch-run": ("container", "b c --bind --cd --set-env -j -w", 1),
    "sarus": ("container", "--mount --workdir --entrypoint", 1),
    "uv": ("env", "--with --python --project --group --extra", 0),
    "poetry": ("env", "C", 0),
    "pixi": ("env", "e --environment --manifest-path", 0),
    "xvfb-run": ("other", "s n", 0),
    "ezpz": ("other", "", 0),
}
_CONTAINER_VALUES = frozenset(
    "-B --bind -H --home -W --workdir --pwd --env --env-file -o --overlay --scratch -S --fakeroot-uid --app --network"
    " --network-args --hostname --dns --security --mount --nvccli-dev -v --volume -e -w --workdir --gpus --ipc --name"
    " --ulimit --shm-size --network --net -u --user --device --entrypoint --cpus --memory --runtime --group-add"
    " --cap-add --security-opt --cpuset-cpus --cdi --rootfs --cwd -p --publish --userns".split()
)
_VERBS = {"apptainer": ("exec", "run"), "singularity": ("exec", "run"), "docker": ("run", "exec"),
          "podman": ("run", "exec"), "podman-hpc": ("run", "exec"), "nerdctl": ("run", "exec"),
          "udocker": ("run",), "enroot": ("start", "exec"), "sarus": ("run",), "nsys": ("profile", "launch"),
          "uv": ("run",), "poetry": ("run",), "pixi": ("run",), "py-spy": ("record",)}  # fmt: skip


def measure(name: str, words: tuple[Arg, ...]) -> tuple[Kind, int, list[Set]] | None:
    """Kind, number of words and variables set by a wrapper at the front; None: it is none."""
    if name == "env":
        return _env(words)
    if name in ("apptainer", "singularity", "docker", "podman", "podman-hpc", "nerdctl", "udocker"):
        return _container(name, words)
    if name in ("conda", "mamba", "micromamba"):
        return _conda(words)
    if name in _SIMPLE:
        return _plain(name, words)
    if _AFFINITY.match(name) and len(words) > 1:
        return "affinity", _skip(words, 1, frozenset()), []
    return None


def _skip(words: tuple[Arg, ...], at: int, values: frozenset[str]) -> int:
    while at < len(words):
        text = words[at].value.text
        head = words[at].value.parts[0] if words[at].value.parts else ""
        if text is None and not (isinstance(head, str) and head.startswith("-")):
            break
        text = text if text is not None else str(head)
        if text == "--":
            return at + 1
        if not text.startswith("-") or text == "-":
            break
        at += 2 if text in values and "=" not in text else 1
    return at


def _plain(name: str, words: tuple[Arg, ...]) -> tuple[Kind, int, list[Set]] | None:
    kind, listed, own = _SIMPLE[name]
    values = frozenset(f if f.startswith("-") else f"-{f}" for f in listed.split())
    at = 1
    if name in _VERBS:
        if len(words) < 2 or words[1].value.text not in _VERBS[name]:
            return None
        at = 2
    at = _skip(words, at, values)
    if name == "taskset" and any((w.value.text or "") in ("-c", "--cpu-list", "-pc") for w in words[1:at]):
        own = 1
    return kind, min(at + own, len(words)), []


def _env(words: tuple[Arg, ...]) -> tuple[Kind, int, list[Set]] | None:
    at = _skip(words, 1, frozenset(("-u", "--unset", "-C", "--chdir")))
    found: list[Set] = []
    while at < len(words):
        head = words[at].value.parts[0] if words[at].value.parts else ""
        name, mark, rest = head.partition("=") if isinstance(head, str) else ("", "", "")
        if not mark or not name.isidentifier():
            break
        found.append((name, join((rest, *words[at].value.parts[1:])), words[at].place))
        at += 1
    return ("env", at, found) if at < len(words) else None


def _container(name: str, words: tuple[Arg, ...]) -> tuple[Kind, int, list[Set]] | None:
    at = _skip(words, 1, frozenset())
    if at >= len(words) or words[at].value.text not in _VERBS[name]:
        return None
    start = at + 1
    at = _skip(words, start, _CONTAINER_VALUES)
    found: list[Set] = []
    for index in range(start, min(at, len(words))):
        word = words[index]
        text = word.value.text or ""
        value: Value | None = None
        if text in ("--env", "-e") and index + 1 < len(words):
            value = words[index + 1].value
        elif str(word.value).startswith("--env="):
            value = join((str(word.value.parts[0])[6:], *word.value.parts[1:]))
        if value is not None:
            for piece in value.split(","):
                head = piece.parts[0] if piece.parts else ""
                key, mark, rest = head.partition("=") if isinstance(head, str) else ("", "", "")
                if mark and key.isidentifier():
                    found.append((key, join((rest, *piece.parts[1:])), word.place))
    return "container", min(at + 1, len(words)), found


def _conda(words: tuple[Arg, ...]) -> tuple[Kind, int, list[Set]] | None:
    if len(words) < 3 or words[1].value.text != "run":
        return None
    return "conda", _skip(words, 2, frozenset(("-n", "--name", "-p", "--prefix", "--cwd"))), []
