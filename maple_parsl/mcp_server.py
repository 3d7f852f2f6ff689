"""An MCP server: plan, check, diagnose and status for assistants; submission only where a person enabled it.

What an assistant sends is text to be read: no file it names is opened, and nothing in it is run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maple_parsl.errors import ConfigurationError, LimitError, MapleError
from maple_parsl.version import VERSION

MOST = 2_000_000  # characters of a script or log


def plan(words: str) -> dict[str, Any]:
    """Plan a training launch stated in words: answers the batch script, or numbered questions; submits nothing."""
    import maple_parsl.api as api

    found = api.ask(words[:MOST])
    told = found.to_dict()
    if found.plan is not None:
        return {"title": found.plan.title, "script": found.plan.script, "findings": _findings(found.plan.findings),
                "understood": told["reading"], "node_hours": found.plan.node_hours, "notes": told["notes"]}  # fmt: skip
    return {"questions": told["questions"], "understood": told["reading"]}


def check(script: str, site: str | None = None) -> dict[str, Any]:
    """Check the text of a batch script before it is queued: faults with line, class and what to change."""
    import os

    from maple_parsl.catalogue import Catalogue
    from maple_parsl.checking import inspect
    from maple_parsl.folders import current

    known = _site(site, Catalogue.load(os.environ, current())) if site else None
    report = inspect(script[:MOST], known, name="job.sh")
    return {"findings": _findings(report.findings), "not_applied": list(report.not_applied)}


def diagnose(log: str, script: str | None = None) -> dict[str, Any]:
    """Find the first cause of a failed launch in the text of its log."""
    from maple_parsl.diagnosis import LogSource
    from maple_parsl.diagnosis import diagnose as first_cause

    result = first_cause([LogSource.of_text("log", log[:MOST])], script=script[:MOST] if script else None)
    return result.model_dump(mode="json", by_alias=True)


def status(run: str | None = None) -> dict[str, Any]:
    """Where a run stands; without an id, the runs in the store, newest first."""
    import maple_parsl.api as api
    from maple_parsl.cli.output import jsonable

    if run is None:
        return {"runs": [{"id": each.id, "title": each.summary.title} for each in api.runs()[:50]]}
    from maple_parsl.runs.run import Run

    found: dict[str, Any] = jsonable(Run.open(run).status())
    return found


def submit(words: str, max_node_hours: float) -> dict[str, Any]:
    """Submit a launch stated in plain words, once, if it can cost at most max_node_hours. Enabled by the operator."""
    import maple_parsl.api as api

    found = api.ask(words[:MOST])
    if found.plan is None:
        raise found.unanswered()
    if found.plan.node_hours is None and found.plan.scheduler != "none":
        raise LimitError("the cost of this launch is not known; nothing was submitted")
    run = api.run(request=found.plan.request, max_node_hours=max_node_hours, yes=True)
    return {"run": run.id, "job_id": run.status().job_id}


def server(allow_submit: bool = False) -> Any:
    """The server, with the tools it exposes.

    Raises:
        ConfigurationError: the MCP library is not installed.
    """
    try:
        from mcp.server.mcpserver import MCPServer
    except ImportError:
        raise ConfigurationError("the MCP library is not installed; pip install 'maple-parsl[mcp]'") from None

    made = MCPServer(
        "maple",
        version=VERSION,
        instructions="Plan, check and explain distributed training launches.",
        log_level="ERROR",
    )
    tools: list[Callable[..., dict[str, Any]]] = [plan, check, diagnose, status, *([submit] if allow_submit else [])]
    for tool in tools:
        made.tool(name=tool.__name__, description=tool.__doc__)(_plainly(tool))
    return made


def _plainly(tool: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """The tool with Maple's own errors as an answer in plain words."""
    from functools import wraps

    @wraps(tool)
    def answered(*args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            return tool(*args, **kwargs)
        except MapleError as error:
            return {"error": str(error), "kind": type(error).__name__}

    return answered


def _findings(found: Any) -> list[dict[str, Any]]:
    return [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in found]


def _site(name: str, catalogue: Any) -> Any:
    if "/" in name or name.lower().endswith(".toml"):
        raise ConfigurationError("name a site of the catalogue; files are not opened for an assistant")
    return catalogue.get(name).site
