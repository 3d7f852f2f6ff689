"""Programs by their names: which MPI a launcher is of, and what is a training program."""

from __future__ import annotations

import re

from maple_parsl.script.model import Arg, Option

_NOT_TRAINING = frozenset("pip venv compileall site ensurepip zipfile json.tool http.server nltk.downloader".split())
PYTHON = re.compile(r"(?:python|pypy)[\d.]*\Z")


def base_name(arg: Arg) -> str:
    """Last part of a path, where its end is certain."""
    parts = arg.value.parts
    last = parts[-1] if parts else ""
    if not isinstance(last, str):
        return ""
    if len(parts) > 1 and "/" not in last:
        return ""
    return last.rpartition("/")[2]


def dialect(launcher: str, name: str, parsed: tuple[Option, ...]) -> str:
    if launcher not in ("mpiexec", "mpirun"):
        return {"srun": "slurm"}.get(launcher, launcher)
    if "openmpi" in name or name in ("orterun", "prterun"):
        return "openmpi"
    if "hydra" in name or "mpich" in name:
        return "hydra"
    flags = {o.flag for o in parsed}
    if flags & {"--map-by", "-map-by", "-x", "--mca", "-mca", "--oversubscribe", "-oversubscribe", "-npernode",
                "--npernode", "--allow-run-as-root", "--bind-to", "-bind-to", "--report-bindings", "-H"}:  # fmt: skip
        return "openmpi"
    if flags & {"--cpu-bind", "--depth", "-d", "--ppn", "--no-vni", "--line-buffer", "--mem-bind", "--gpu-bind"}:
        return "pals"
    if flags & {"-ppn", "-perhost", "-genv", "-genvall", "-f", "-bootstrap", "-genvlist", "-hosts", "-iface"}:
        return "hydra"
    return "unknown"


def is_training(words: tuple[Arg, ...]) -> bool:
    """Whether words that no launcher starts are a training program: Python with a script or module."""
    name = base_name(words[0])
    if name.endswith(".py"):
        return True
    if not PYTHON.match(name):
        return False
    at = 1
    while at < len(words):
        text = words[at].value.text
        if text is None:
            return True
        if text == "-m":
            module = (words[at + 1].value.text or "x") if at + 1 < len(words) else ""
            return bool(module) and module.split(".")[0] not in _NOT_TRAINING and module not in _NOT_TRAINING
        if text in ("-c", "-", "-V", "--version"):
            return False
        if not text.startswith("-"):
            return True
        at += 2 if text in ("-W", "-X") else 1
    return False
