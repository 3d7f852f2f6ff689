"""``python -m tests.testbeds.globus [up|shell|exec|status|down]``: try remote runs on one machine."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.testbeds.globus.stand import PLACES, Stand
from tests.testbeds.slurm.machine import TestbedError

DEFAULT_PREFIX = Path(tempfile.gettempdir()) / f"maple-stand-{os.geteuid()}"
CLIENT = "client"
WELCOME = """
You are outside the sites: this shell shares the stand's network, and none of its files, users or schedulers.
  maple endpoints                                       the sites, and whether their endpoints answer
  maple run gpt fsdp slurm-stand --nodes 2 --walltime 5m --yes --follow
Leaving this shell ends the stand."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.testbeds.globus", description=__doc__)
    commands = parser.add_subparsers(dest="command")
    parser.set_defaults(command="shell", prefix=DEFAULT_PREFIX, sites=None)
    helps = {
        "shell": "start it, open a shell outside the sites, and end it with the shell (the default)",
        "up": "start it and leave it running",
        "exec": "run a command outside the sites: exec -- CMD...",
        "status": "say what is up",
        "down": "end it and remove its files",
    }
    for name, text in helps.items():
        command = commands.add_parser(name, help=text)
        command.add_argument("--prefix", type=Path, default=DEFAULT_PREFIX, help="folder (default: %(default)s)")
        if name in ("shell", "up"):
            command.add_argument("--sites", nargs="*", choices=[place.name for place in PLACES])
        if name == "exec":
            command.add_argument("argv", nargs="+", metavar="CMD")
    return parser


def _client(stand: Stand) -> dict[str, str]:
    folder = stand.prefix / CLIENT
    folder.mkdir(exist_ok=True)
    environ = {**os.environ, **stand.client_environment(folder)}
    commands = folder / "bin"
    commands.mkdir(exist_ok=True)
    maple = commands / "maple"
    maple.write_text(
        f'#!/bin/sh\nexec {sys.executable} -c "import sys; from maple_parsl.cli import main; sys.exit(main())" "$@"\n'
    )
    maple.chmod(0o755)
    return {**environ, "PATH": f"{commands}:{environ['PATH']}", "PS1": "(stand) $ "}


def _up(args: argparse.Namespace) -> Stand:
    begin = time.monotonic()
    chosen = [place for place in PLACES if args.sites is None or place.name in args.sites]
    stand = Stand(chosen, prefix=args.prefix, detach=True).start()
    print(f"{', '.join(stand.places)} online after {time.monotonic() - begin:.0f} s; files and logs in {stand.prefix}")
    return stand


def _run(stand: Stand, words: Sequence[str], folder: Path | None = None) -> int:
    return subprocess.run(stand.outside(words), env=_client(stand), cwd=folder, check=False).returncode


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    try:
        if args.command == "up":
            _up(args)
            print("try: python -m tests.testbeds.globus exec -- maple endpoints")
        elif args.command == "shell":
            stand = _up(args)
            try:
                print(WELCOME)
                return _run(
                    stand, ["bash", "--norc"], stand.prefix / CLIENT if (stand.prefix / CLIENT).exists() else None
                )
            finally:
                stand.remove()
        elif args.command == "exec":
            return _run(Stand.attach(args.prefix), args.argv)
        elif args.command == "status":
            stand = Stand.attach(args.prefix)
            for name in stand.places:
                print(f"{name}: {stand.status(name)}")
        else:
            Stand.attach(args.prefix).remove()
    except (TestbedError, ValueError) as error:
        print(f"error: {error}", *getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)
        return 1
    return 0
