"""A site file drafted from what a cluster says of itself: read-only commands, nothing submitted, nothing guessed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from maple_parsl.here.command import Runner
from maple_parsl.here.probe import node, pbs, slurm
from maple_parsl.here.probe.asking import Asker
from maple_parsl.here.probe.draft import Draft, text
from maple_parsl.here.probe.script import draft_of

__all__ = ["Asker", "Draft", "draft_of", "probed", "text", "whole"]


def probed(
    name: str,
    kind: str,
    *,
    run: Runner | None = None,
    environ: Mapping[str, str] | None = None,
    host: str | None = None,
    day: date | None = None,
    mounts: Path = Path("/proc/mounts"),
) -> tuple[Draft, Asker]:
    """Ask this machine's scheduler and tools; the draft, and which commands answered.

    Args:
        kind: ``slurm`` or ``pbs``. run: how a command is run, see :mod:`maple_parsl.here.command`.
    """
    environ = os.environ if environ is None else environ
    ask = Asker(run)
    draft = Draft(name, name, host or os.uname().nodename, day or date.today())
    {"slurm": slurm, "pbs": pbs}[kind].probe(draft, ask)
    node.probe(draft, ask, environ, mounts)
    return whole(draft), ask


def whole(draft: Draft) -> Draft:
    """The draft with a placeholder for whatever a site file cannot be read without."""
    draft.ask("scheduler", "kind", "slurm", "slurm or pbs")
    draft.ask("directives", "gpu_request", "none", "gpus-per-node, gpus, gres, select-ngpus; none for whole nodes")
    if not any(table.startswith("kinds.") for table in draft.tables):
        table, why = "kinds.default", "no command told anything of the nodes"
        draft.ask(table, "title", "EDIT", why)
        for key, value in (
            ("vendor", "none"),
            ("gpus", 0),
            ("devices", 1),
            ("backend", "gloo"),
            ("torch_device", "cpu"),
        ):
            draft.ask(table, key, value, why)
    scheduler = draft.tables["scheduler"]["kind"].value
    slurm_names = {"rank": "SLURM_PROCID", "local_rank": "SLURM_LOCALID", "world_size": "SLURM_NTASKS"}
    draft.ask("launchers.default", "command", "srun" if scheduler == "slurm" else "mpiexec", "the site's guide on jobs")
    draft.ask("launchers.default", "dialect", "slurm" if scheduler == "slurm" else "openmpi", "goes with the command")
    for key, variable in slurm_names.items():
        mine = variable if scheduler == "slurm" else f"OMPI_COMM_WORLD_{'SIZE' if key == 'world_size' else key.upper()}"
        draft.ask("launchers.default", key, [mine], "goes with the launcher")
    draft.tables.setdefault("environments.default", {})
    draft.tables.setdefault("rendezvous", {})
    return draft
