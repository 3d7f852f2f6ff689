"""Plan -> ``user_endpoint_config``: the values that a facility's multi-user endpoint fills into its own template.

They are the values of :func:`maple_parsl.blocks.config`'s provider, one to one; what the endpoint's template has no
variable for is refused, not dropped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from maple_parsl.errors import ConfigurationError, RequestError

if TYPE_CHECKING:
    from maple_parsl.plan import Plan

_MARKS = {"slurm": "#SBATCH ", "pbs": "#PBS "}
_OWN = {
    "slurm": ("--account", "-A", "--partition", "-p", "--time", "-t", "--nodes", "-N"),
    "pbs": ("-A", "-q", "-l walltime", "-l select"),
}


def endpoint_config(plan: Plan) -> dict[str, Any]:
    """The values for ``endpoints/multi-user-*``; the same plan gives the same JSON, and so the same process there.

    Raises:
        RequestError: the site has no scheduler, so there is no block to ask for.
    """
    if plan.scheduler == "none":
        raise RequestError(f"{plan.site} has no scheduler; a multi-user endpoint starts blocks of one")
    from maple_parsl.blocks import stock, worker_init
    from maple_parsl.provider import check_directives, checked

    check_directives(plan)
    start = worker_init(plan, path="")
    provider = stock(plan, start, 1, 1)
    mark, own = _MARKS[plan.scheduler], _OWN[plan.scheduler]
    rows = [row for row in str(provider.scheduler_options).split("\n") if row]
    rest = [row for row in rows if not row.removeprefix(mark).startswith(own)]
    made = {
        "account": checked("account", plan.account),
        "queue": checked("queue", plan.queue),
        "nodes_per_block": plan.shape.nodes,
        "walltime": str(provider.walltime),
        "scheduler_options": "\n".join(rest),
        "worker_init": start,
    }
    if plan.scheduler == "pbs":
        made |= {"cpus_per_node": provider.cpus_per_node, "select_options": provider.select_options or ""}
    return {name: value for name, value in made.items() if value not in (None, "")}


def validated(config: Mapping[str, Any], schema: Mapping[str, Any] | str | None, where: str) -> dict[str, Any]:
    """The configuration, if the endpoint's own schema takes it.

    Args:
        schema: as the endpoint registered it (JSON text or object); None where it has none.
        where: names the endpoint in messages.

    Raises:
        ConfigurationError: the schema refuses it, or cannot be read; every reason is named.
    """
    if not schema:
        return dict(config)
    import jsonschema

    try:
        read = json.loads(schema) if isinstance(schema, str) else dict(schema)
        kind = jsonschema.validators.validator_for(read, default=jsonschema.Draft202012Validator)
        faults = sorted(kind(read).iter_errors(dict(config)), key=str)
    except (ValueError, TypeError, jsonschema.exceptions.SchemaError) as error:
        raise ConfigurationError(f"the schema of {where} cannot be read: {str(error)[:200]}") from None
    if faults:
        rows = [(".".join(map(str, fault.path)) or "as a whole", fault.message[:300]) for fault in faults]
        told = "\n".join(f"  - {place}: {message}" for place, message in rows)
        raise ConfigurationError(
            f"{where} does not take this plan's values; nothing was sent:\n{told}\nAsk its administrators for the"
            " variable, or use an endpoint of your own (maple endpoints setup)"
        )
    return dict(config)
