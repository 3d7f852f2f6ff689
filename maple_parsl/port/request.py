"""The request a script makes, as far as another site can be asked the same."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from maple_parsl.request import Request
from maple_parsl.script.times import seconds
from maple_parsl.walltime import Walltime

if TYPE_CHECKING:
    from maple_parsl.port.program import Program
    from maple_parsl.script.model import Directive, Script
    from maple_parsl.script.rankmap import LaunchRanks, ScriptRanks
    from maple_parsl.site import Site

TOKEN = "MAPLE_CARRIED_PROGRAM"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,60}\Z")
_SIZE = frozenset(
    "--nodes --ntasks --ntasks-per-node --cpus-per-task --gpus-per-node --gres --gpus --gpus-per-task --mem"
    " --mem-per-cpu --mem-per-gpu --time --output --error --open-mode --job-name --exclusive --export -l -o -e -j -N"
    " --ntasks-per-gpu --cpus-per-gpu --gpu-bind --constraint --threads-per-core --hint --signal --requeue"
    " --no-requeue --ntasks-per-socket -r -k -V".split()
)


def request_of(
    script: Script, ranks: ScriptRanks, main: LaunchRanks, program: Program, target: Site, source: Site | None,
    stated: Mapping[str, Any],
) -> Request:  # fmt: skip
    """Nodes, devices, walltime and name of the script; account and queue only as stated for the target.

    Args:
        stated: fields of the request that were given for the target; they win.

    Raises:
        RequestError: a stated value is malformed.
    """
    fields: dict[str, Any] = {"site": target.name, "script": f"{TOKEN}{'.py' if program.python else '.bin'}"}
    fields["nodes"] = main.nodes or ranks.job_nodes
    fields["walltime"] = _walltime(script)
    name = script.directive("--job-name") or script.directive("-N")
    if name is not None and name.value and _NAME.match(name.value):
        fields["name"] = name.value
    devices = main.per_node
    whole = ranks.kind is not None and devices in (ranks.kind.devices, ranks.kind.gpus)
    if devices is not None and not whole and source is not None and devices < _most(target):
        fields["gpus_per_node"] = devices
    if source is not None and source.name == target.name:
        fields |= _same_site(script)
    fields |= {key: value for key, value in stated.items() if value is not None}
    return Request.of(**fields)


def not_carried(script: Script, source: Site | None) -> list[Directive]:
    """Directives that neither the target nor the launch writes anew, such as mail, arrays and reservations."""
    keep = ("--account", "--partition", "--qos", "-A", "-q", "queue")
    sites = source.directives.model_dump_json() if source is not None else ""
    return [
        d
        for d in script.directives
        if d.state == "effective"
        and d.name.split()[0] not in _SIZE
        and d.name not in keep
        and f"{d.flag}={d.value}" not in sites
    ]


def given(script: Script, *names: str) -> str | None:
    """The value of the first of these directives that is there."""
    for name in names:
        found = script.directive(name)
        if found is not None and found.value:
            return found.value
    return None


def _same_site(script: Script) -> dict[str, Any]:
    return {"account": given(script, "--account", "-A"), "queue": given(script, "--partition", "--qos", "-q", "queue")}


def _walltime(script: Script) -> Walltime | None:
    text = given(script, "walltime", "--time")
    total = seconds(text, script.scheduler) if text else None
    return Walltime(total) if total else None


def _most(site: Site) -> int:
    return max(kind.devices for kind in site.kinds.values())
