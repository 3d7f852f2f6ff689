"""STAND-INS for mpiexec (PALS, Hydra), mpirun (Open MPI) and ibrun: they start processes here. Not an MPI.

Started as ``python launchers.py DIALECT ARGUMENTS...`` inside a job of the stand-in PBS. An option that the
dialect does not have is refused, as the real launcher would.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

from mom import as_host

# Options with a value, and without one.
OPTIONS = {
    "pals": (
        {"-n", "-np", "--np", "--ppn", "-ppn", "--cpu-bind", "--hostfile", "-d", "--depth", "--env", "--hosts"},
        {"--no-vni", "--line-buffer", "-l", "--label"},
    ),
    "hydra": ({"-n", "-np", "-ppn", "-f", "-hosts", "-bind-to", "-map-by", "-genv", "-genvlist", "-env"}, {"-l"}),
    "openmpi": ({"-n", "-np", "--map-by", "--bind-to", "--hostfile", "-x", "--host", "--mca"}, {"--report-bindings"}),
    "ibrun": ({"-n", "-np", "-o"}, set()),
}


def refuse(words: str) -> NoReturn:
    print(f"launcher: {words}", file=sys.stderr)
    sys.exit(2)


def parsed(dialect: str, words: list[str]) -> tuple[list[tuple[str, str]], list[str]]:
    valued, plain = OPTIONS[dialect]
    found = []
    while words and words[0].startswith("-"):
        word = words.pop(0)
        name, mark, value = word.partition("=")
        if name in valued:
            found.append((name, value if mark and name.startswith("--") else words.pop(0)))
            if name == "-genv":
                found[-1] = (name, f"{found[-1][1]}={words.pop(0)}")
        elif word in plain:
            found.append((word, ""))
        else:
            refuse(f"unrecognized argument {word} ({dialect})")
    return found, words


def identity(dialect: str, rank: int, size: int, local: int, per_node: int, node: int) -> dict[str, str]:
    """The variables by which a process of that dialect knows its place."""
    pmi = {"PMI_RANK": rank, "PMI_SIZE": size}
    values: dict[str, dict[str, int]] = {
        "pals": pmi
        | {"PMI_LOCAL_RANK": local, "PMI_LOCAL_SIZE": per_node, "PALS_RANKID": rank, "PALS_NODEID": node}
        | {"PALS_LOCAL_RANKID": local, "PALS_LOCAL_SIZE": per_node},
        "hydra": pmi | {"MPI_LOCALRANKID": local, "MPI_LOCALNRANKS": per_node},
        "ibrun": pmi | {"MPI_LOCALRANKID": local, "MPI_LOCALNRANKS": per_node},
        "openmpi": {
            "OMPI_COMM_WORLD_RANK": rank,
            "OMPI_COMM_WORLD_SIZE": size,
            "OMPI_COMM_WORLD_LOCAL_RANK": local,
            "OMPI_COMM_WORLD_LOCAL_SIZE": per_node,
            "OMPI_COMM_WORLD_NODE_RANK": local,
        },
    }
    return {name: str(value) for name, value in values[dialect].items()}


def main(dialect: str, words: list[str]) -> int:
    options, command = parsed(dialect, words)
    last = dict(options)
    if not command:
        refuse("no command")
    listed = Path(last.get("--hostfile") or last.get("-f") or os.environ["PBS_NODEFILE"]).read_text().split()
    hosts = list(dict.fromkeys(line for line in listed if "=" not in line))
    size = int(last.get("-n") or last.get("-np") or last.get("--np") or len(hosts))
    ratio = re.fullmatch(r"ppr:(\d+):node.*", last.get("--map-by", ""))
    stated = last.get("--ppn") or last.get("-ppn") or (ratio[1] if ratio else None)
    per_node = int(stated) if stated else -(-size // len(hosts))
    if size > per_node * len(hosts):
        refuse(f"{size} processes do not fit on {len(hosts)} nodes with {per_node} on each")
    here = os.uname().nodename
    running = []
    for rank in range(size):
        node, local = divmod(rank, per_node)
        if dialect == "openmpi" and hosts[node] != here:  # remote daemons start with a bare environment
            env = {"PATH": "/usr/bin:/bin", "HOME": os.environ["HOME"]}
            for name, value in options:
                variable, mark, text = value.partition("=")
                if name == "-x" and (mark or variable in os.environ):
                    env[variable] = text if mark else os.environ[variable]
        else:
            env = dict(os.environ)
        for name, value in options:
            if name in ("--env", "-genv") and "=" in value:
                env[value.partition("=")[0]] = value.partition("=")[2]
        env |= identity(dialect, rank, size, local, per_node, node)
        running.append(subprocess.Popen([*as_host(hosts[node]), *command], env=env))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, lambda got, _: [process.send_signal(got) for process in running])
    code = 0
    while any(process.poll() is None for process in running):
        for process in running:
            if process.returncode and not code:
                code = process.returncode if process.returncode > 0 else 128 - process.returncode
                for other in running:
                    if other.poll() is None:
                        other.terminate()
        time.sleep(0.02)
    return code or next((p.returncode if p.returncode > 0 else 128 - p.returncode for p in running if p.returncode), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
