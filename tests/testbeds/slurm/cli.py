"""``python -m tests.testbeds.slurm up|down|exec|status``: try a testbed by hand."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from .cluster import Testbed
from .config import BedConfig
from .machine import TestbedError

DEFAULT_PREFIX = Path(tempfile.gettempdir()) / f"maple-slurm-testbed-{os.geteuid()}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.testbeds.slurm", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    helps = {
        "up": "start a cluster (again, if one is up there)",
        "down": "end it and remove its files",
        "exec": "run a command on the head node: exec -- CMD...",
        "status": "say what is up",
    }
    for name, text in helps.items():
        command = commands.add_parser(name, help=text)
        command.add_argument("--prefix", type=Path, default=DEFAULT_PREFIX, help="folder (default: %(default)s)")
        if name == "up":
            command.add_argument("--nodes", type=int, default=4)
            command.add_argument("--gpus", type=int, default=4, help="pretended GPUs per node")
            command.add_argument("--accounting", action="store_true", help="accounts, QOS, sacct (slurmdbd)")
        if name == "exec":
            command.add_argument("--node", help="run on this node rather than on the head")
            command.add_argument("argv", nargs="+", metavar="CMD")
    return parser


def _up(args: argparse.Namespace) -> int:
    config = BedConfig(nodes=args.nodes, gpus=args.gpus, accounting=args.accounting)
    begin = time.monotonic()
    bed = Testbed(config, prefix=args.prefix, detach=True).start()
    print(f"{len(bed.nodes)} nodes idle after {time.monotonic() - begin:.2f} s; files and logs in {bed.prefix}")
    print("try: python -m tests.testbeds.slurm exec -- srun -N2 hostname")
    return 0


def _exec(args: argparse.Namespace) -> int:
    bed = Testbed.attach(args.prefix)
    words = [*bed.prefix_command(args.node), *args.argv]
    sys.stdout.flush()
    os.execvp(words[0], words)


def _status(args: argparse.Namespace) -> int:
    bed = Testbed.attach(args.prefix)
    if not bed.is_up:
        print(f"no testbed is up in {args.prefix}")
        return 1
    print(bed.run(["sinfo"], check=False).stdout, end="")
    print(bed.run(["squeue"], check=False).stdout, end="")
    return 0


def _down(args: argparse.Namespace) -> int:
    Testbed.attach(args.prefix).remove()
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    try:
        return {"up": _up, "exec": _exec, "status": _status, "down": _down}[args.command](args)
    except (TestbedError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
