"""What a scheduler takes from a script and a command line together."""

from __future__ import annotations

import re
import shlex

SHORT = {
    "-N": "--nodes",
    "-n": "--ntasks",
    "-c": "--cpus-per-task",
    "-t": "--time",
    "-A": "--account",
    "-p": "--partition",
    "-q": "--qos",
    "-C": "--constraint",
    "-J": "--job-name",
    "-o": "--output",
    "-e": "--error",
    "-M": "--clusters",
}


def effective_directives(script: str, command_line: str = "") -> dict[str, str]:
    """Option -> value, after the rules of the scheduler whose directives the script has.

    sbatch: the last directive of a kind counts, the command line over all. qsub: the first one counts, the
    command line before all; each resource behind ``-l`` is one of its own.
    """
    slurm = "#SBATCH" in script
    prefix = "#SBATCH" if slurm else "#PBS"
    rows = []
    for line in script.splitlines():
        if line.startswith(prefix + " "):
            rows.append(line.removeprefix(prefix).strip())
        elif line.strip() and not line.startswith("#"):
            break
    stated = _options(" ".join(rows), slurm)
    given = _options(command_line.partition(" ")[2], slurm)
    if slurm:
        return dict(stated) | dict(given)
    found: dict[str, str] = {}
    for name, value in (*given, *stated):
        found.setdefault(name, value)
    return found


def _options(text: str, slurm: bool) -> list[tuple[str, str]]:
    words, found = shlex.split(text), []
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            continue
        if slurm and word.startswith("--"):
            name, mark, value = word.partition("=")
            found.append((name, value if mark else "set"))
            continue
        name, value = word[:2], word[2:] or (words.pop(0) if words else "")
        if slurm:
            found.append((SHORT[name], value))
        elif name == "-l":
            for part in re.split(r",(?=\w+=)", value):
                resource, _, amount = part.partition("=")
                found.append((f"-l {resource}", amount))
        else:
            found.append((name, value))
    return [(name, _seconds(value) if name in ("--time", "-l walltime") else value) for name, value in found]


def _seconds(value: str) -> str:
    """Times in one unit: Slurm reads a bare number as minutes."""
    if value.isdigit():
        return str(int(value) * 60)
    total = 0
    for part in value.split(":"):
        total = total * 60 + int(part)
    return str(total)
