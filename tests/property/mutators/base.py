"""How a fault is put into a generated script: a function of the text and the site it is for gives the faulty text.

None: it cannot occur there. ``ABSENT`` names the rules whose fault no edit of a generated
script can bring about, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from maple_parsl.site import Site

Mutator = Callable[[str, Site], str | bytes | None]
MUTATORS: dict[str, Mutator] = {}

ABSENT = {
    "resource-set-gpus": "jsrun's resource sets: LSF, which no site of the catalogue runs",
    "lsb-hosts-empty": "LSF, which no site of the catalogue runs",
    "gpus-unstated": "only for a script whose site is not known",
    "srun-without-mpi-type": "only for a script whose site is not known",
}


def slurm(text: str) -> bool:
    return "\n#SBATCH " in text


def pbs(text: str) -> bool:
    return "\n#PBS " in text


def swap(text: str, pattern: str, new: str) -> str | None:
    """The first match replaced; None where there is none."""
    made, count = re.subn(pattern, new, text, count=1, flags=re.M)
    return made if count else None


def directive(text: str, line: str) -> str | None:
    """A directive added behind the first one, for its own scheduler."""
    mark = line.split()[0]
    return swap(text, rf"^({mark} .*)$", rf"\1\n{line}")


def last_directive(text: str, line: str) -> str | None:
    """A directive added behind the last one."""
    rows = text.split("\n")
    mark = line.split()[0]
    at = [i for i, row in enumerate(rows[:40]) if row.startswith(mark)]
    return "\n".join([*rows[: at[-1] + 1], line, *rows[at[-1] + 1 :]]) if at else None


def without(text: str, pattern: str) -> str | None:
    """Lines taken out."""
    made, count = re.subn(rf"^{pattern}.*\n", "", text, flags=re.M)
    return made if count else None


def before_launch(text: str, line: str) -> str:
    return re.sub(r"^(?=maple_preflight |maple_launch )", lambda _: f"{line}\n", text, count=1, flags=re.M)


def launch(text: str, line: str) -> str:
    """Another launch instead of those written."""
    return re.sub(r"(?ms)^(?:maple_preflight|maple_launch) .*?(?=^maple_finish)", lambda _: line + "\n", text)


def program(text: str, words: str) -> str | None:
    """Arguments added to the program."""
    return swap(text, r"(?s)\A(.*--paradigm \w+[^\n]*)", rf"\1 {words}")  # the last: the first is the preflight's


def option(text: str, words: str) -> str | None:
    """An option added to the launcher."""
    return swap(text, r"^(maple_launch (?:srun|mpiexec|mpirun|ibrun))\b", rf"\1 {words}")


def starts(text: str) -> str:
    """The launcher of the script."""
    match = re.search(r"^maple_launch (\S+)", text, re.M)
    return match[1] if match else ""


def add(identifier: str, mutator: Mutator) -> None:
    assert identifier not in MUTATORS
    MUTATORS[identifier] = mutator


def on_slurm(identifier: str, made: Callable[[str], str | bytes | None]) -> None:
    add(identifier, lambda text, _: made(text) if slurm(text) else None)


def on_pbs(identifier: str, made: Callable[[str], str | bytes | None]) -> None:
    add(identifier, lambda text, _: made(text) if pbs(text) else None)


def on_both(identifier: str, made: Callable[[str], str | bytes | None]) -> None:
    add(identifier, lambda text, _: made(text) if slurm(text) or pbs(text) else None)


def either(identifier: str, first: Callable[[str], str | None], second: Callable[[str], str | None]) -> None:
    """One form for Slurm, one for PBS."""
    add(identifier, lambda text, _: first(text) if slurm(text) else second(text) if pbs(text) else None)


def bare(text: str) -> str:
    """Without the lines that bring an environment."""
    pattern = r"^(?:module |command -v module|maple_check |eval |conda |source |\. ).*\n"
    return re.sub(pattern, "", text, flags=re.M)


def offline(text: str, site: Site) -> bool:
    """Its nodes have no way out."""
    return (slurm(text) or pbs(text)) and {e.outbound for e in site.environments.values()} == {"none"}


def forbidden(site: Site) -> str:
    """An option the site refuses."""
    return next((name for name in site.directives.forbidden if not name.startswith("--mem")), "")


def config(text: str, arguments: str) -> str:
    """A configuration of Parsl written by the script."""
    return before_launch(
        text,
        f"cat > config.py <<'E'\nfrom parsl.config import Config\nc = Config(executors=[HighThroughputExecutor({arguments})])\nE",
    )


def torchrun(more: str = "", nodes: str = "--nnodes=2", endpoint: str = "$MASTER_ADDR:$MASTER_PORT") -> str:
    return (
        f"torchrun {nodes} --nproc-per-node=4 --rdzv-backend=c10d --rdzv-id=$MAPLE_JOB_ID"
        f" --rdzv-endpoint={endpoint}{more} train.py"
    )


def node_step(text: str, command: str) -> str:
    """A launch with one task per node."""
    head = "srun --nodes=2 --ntasks-per-node=1" if slurm(text) else "mpiexec -n 2 --ppn 1"
    return launch(text, f"{head} {command}")


def device_step(text: str, command: str) -> str:
    """A launch with four tasks per node."""
    head = "srun --nodes=2 --ntasks-per-node=4" if slurm(text) else "mpiexec -n 8 --ppn 4"
    return launch(text, f"{head} {command}")
