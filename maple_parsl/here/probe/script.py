"""Facts of a site from a job script that works there, as the verifier's reader reads it."""

from __future__ import annotations

import re
from datetime import date

from maple_parsl.here.probe.draft import Draft, Value
from maple_parsl.script.model import Launch, Script

_NETWORK = re.compile(r"(NCCL|RCCL|CCL|FI|MPICH|UCX|OMPI|GLOO|NVSHMEM)_\w+\Z")
_PROXY = re.compile(r"(https?|ftp|no|all)_proxy\Z", re.I)
_DIALECTS = {"srun": "slurm", "mpiexec": None, "mpirun": None, "ibrun": "ibrun"}
_DIALECT_NAMES = frozenset(("slurm", "pals", "hydra", "openmpi", "ibrun"))
_STEPS = ("module", "conda", "venv", "source")


def draft_of(script: Script, name: str, host: str, day: date) -> Draft:
    """What a script shows of its site. That it works is the user's word; limits it does not show stay unknown."""
    draft = Draft(name, name, host, day)
    by = f"{script.name}, a script said to work"
    if script.scheduler in ("slurm", "pbs"):
        draft.put("scheduler", "kind", script.scheduler, by)
    _directives(draft, script, by)
    _environment(draft, script, by)
    for launch in script.launches:
        _launcher(draft, launch, by)
    return draft


def _directives(draft: Draft, script: Script, by: str) -> None:
    def value(option: str) -> str | None:
        found = script.directive(option)
        return found.value if found else None

    if account := value("--account") or value("-A"):
        draft.put("defaults", "account", account, by)
    queue, qos = value("--partition") or value("queue"), value("--qos")
    if queue or qos:
        draft.put("defaults", "queue", queue or qos or "", by)
        option = "queue" if script.scheduler == "pbs" else "partition" if queue else "qos"
        draft.put("scheduler", "queue_option", option, by)
    forms = {"--gpus-per-node": "gpus-per-node", "--gres": "gres", "--gpus": "gpus", "select": "select-ngpus"}
    for option, form in forms.items():
        stated = value(option)
        found = re.search(r"ngpus=(\d+)" if form == "select-ngpus" else r"(?:^|[:,])(\d+)$", stated or "")
        if stated and found and (form != "gres" or stated.startswith("gpu")):
            draft.put("directives", "gpu_request", form, by)
            draft.notes.append(f"{script.name} asks for {found[1]} GPUs ({option} {stated}); a node may have more")
            break
    if clusters := value("--clusters"):
        draft.put("scheduler", "clusters", clusters, by)
    if script.format.shebang and script.format.shebang.text.strip() == "#!/bin/bash -l":
        draft.put("scheduler", "shebang", "#!/bin/bash -l", by)


def _environment(draft: Draft, script: Script, by: str) -> None:
    table = "environments.default"
    lines: list[Value] = []
    for step in script.steps_of(*_STEPS):
        row = script.rows[step.place.line - 1].strip() if step.place.line <= len(script.rows) else ""
        if row and not step.conditional and step.context == "batch" and row not in lines and not row.endswith("\\"):
            lines.append(row)
    modules = [line for line in lines if isinstance(line, str) and line.startswith(("module ", "ml "))]
    if modules:
        draft.put(table, "base", [*modules], by)
    if others := [line for line in lines if line not in modules]:
        draft.notes.append(f"{script.name} also runs: {'; '.join(map(str, others))}. State it as --venv or --conda")
    for item in script.assignments:
        text = item.value.text
        if item.exported and text is not None and not item.conditional and item.how in ("export", "assign"):
            if _NETWORK.match(item.name):
                draft.put(f"{table}.network", item.name, text, by)
            elif _PROXY.match(item.name):
                draft.put(f"{table}.proxy", item.name, text, by)


def _launcher(draft: Draft, launch: Launch, by: str) -> None:
    if launch.launcher not in _DIALECTS:
        return
    table = "launchers.default"
    draft.put(table, "command", launch.launcher, by)
    dialect = _DIALECTS[launch.launcher] or launch.dialect
    if dialect in _DIALECT_NAMES:
        draft.put(table, "dialect", dialect, by)
    if launch.inner is None:
        draft.put(table, "preferred_style", "per-device", by)
