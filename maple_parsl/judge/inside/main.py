"""Reads worlds, one JSON object a line, and writes for each what happened in it. Started by the judge."""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import sys
import tempfile
import traceback
from functools import partial
from typing import Any

from maple_parsl.judge.inside import enter, kernel, mpi, runners, slurm, tools, torch
from maple_parsl.judge.inside.supervisor import Cluster, Handler

HANDLERS: dict[str, Handler] = {
    "srun": slurm.srun,
    "scontrol": slurm.scontrol,
    "squeue": slurm.squeue,
    **dict.fromkeys(("sbatch", "qsub", "salloc"), slurm.submission),
    **dict.fromkeys(("mpiexec", "mpirun", "ibrun", "mpiexec.hydra"), mpi.launch),
    **dict.fromkeys(("python", "python3"), torch.python),
    "torchrun": torch.torchrun,
    "accelerate": runners.accelerate,
    "deepspeed": runners.deepspeed,
    "hostname": tools.hostname,
    "nvidia-smi": tools.nvidia_smi,
    "nproc": tools.nproc,
    "judge-module": tools.module,
    "conda": tools.conda,
    **dict.fromkeys(("ssh", "rsh"), tools.ssh),
    **dict.fromkeys(("apptainer", "singularity", "shifter", "podman-hpc"), tools.container),
}
_MOST_OUTPUT = 100_000


def judged(world: dict[str, Any], contained: bool) -> dict[str, Any]:
    """Run the batch script of a world to its end; called by the sandbox's first process."""
    _limits(world)
    spaces: list[tuple[int, int]] = []
    if contained:
        enter.build_root(world)
        spaces = enter.make_nodes([node["name"] for node in world["nodes"]])
    cluster = Cluster(world, spaces, {name: HANDLERS[name] for name in world["commands"] if name in HANDLERS})
    cluster.stuck = partial(torch.stuck, cluster)
    code, timed_out = cluster.run(world["seconds"])
    return {
        "code": code,
        "timed_out": timed_out,
        "output": _output(world),
        "processes": cluster.processes,
        "notes": cluster.notes,
        "steps": [
            [
                {"node": t.node, "rank": t.rank, "local": t.local, "size": t.size, "command": t.command, "argv": t.argv}
                | {"cores": t.cores, "devices": t.devices, "env": t.env if world["keep_env"] else {}}
                for t in step.tasks
            ]
            for step in cluster.steps
        ],
    }


def _output(world: dict[str, Any]) -> str:
    found = ""
    for path in world["outputs"]:
        for place, _, files in os.walk(path) if os.path.isdir(path) else [(os.path.dirname(path), [], [path])]:
            for name in sorted(files):
                if name.endswith(("log.txt", ".log", "output")):
                    with open(os.path.join(place, name), "rb") as file:
                        found += file.read().decode("utf-8", "replace")
    return found[-_MOST_OUTPUT:]


def _limits(world: dict[str, Any]) -> None:
    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, world["megabytes"] << 20),
        (resource.RLIMIT_CPU, int(world["seconds"]) + 5),
        (resource.RLIMIT_NPROC, 4000),
        (resource.RLIMIT_AS, 4 << 30),
    ):
        hard = resource.getrlimit(kind)[1]
        value = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (value, value))


def _child(world: dict[str, Any], answer: int) -> None:
    """In a child of the reader: enter the sandbox, run, write the answer."""
    try:
        os.setsid()
        kernel.die_with_parent()
        first = enter.isolate()
        if first:
            os.close(answer)
            os._exit(os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]) & 0xFF)
        kernel.die_with_parent()
        data = json.dumps(judged(world, True)).encode()
    except OSError as error:
        data = json.dumps({"sandbox": str(error)}).encode()
    except Exception:
        data = json.dumps({"broken": traceback.format_exc()}).encode()
    with open(answer, "wb") as file:
        file.write(data)
    os._exit(0)


def one(world: dict[str, Any]) -> bytes:
    """Judge one world in a child process of its own, which is killed with all it started when time is up."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        _child(world, write)
    os.close(write)
    parts, deadline = [], world["seconds"] + 15
    while True:
        if not select.select([read], [], [], deadline)[0]:
            os.kill(child, signal.SIGKILL)
            parts = [b'{"broken": "the sandbox did not answer in time"}']
            break
        part = os.read(read, 1 << 20)
        if not part:
            break
        parts.append(part)
    os.close(read)
    os.waitpid(child, 0)
    return b"".join(parts) or b'{"broken": "the sandbox ended without an answer"}'


def main() -> None:
    gc.freeze()
    os.umask(0o022)
    os.chdir(tempfile.gettempdir())
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(one(json.loads(line)) + b"\n")
        sys.stdout.buffer.flush()
