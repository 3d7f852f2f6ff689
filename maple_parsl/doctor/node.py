"""The environment tried on a node: a job of one node that only imports torch. Shown with its cost before it is sent."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from maple_parsl.catalogue import Catalogue
from maple_parsl.doctor.check import Asked, Check
from maple_parsl.errors import LimitError, MapleError, RequestError
from maple_parsl.plan import Plan
from maple_parsl.request import Request
from maple_parsl.runs.cost import Cost

_PROBE = """import platform, sys, torch
kind = "cuda" if torch.cuda.is_available() else "xpu" if hasattr(torch, "xpu") and torch.xpu.is_available() else "cpu"
count = getattr(torch, kind).device_count() if kind != "cpu" else 0
print("maple-doctor: torch", torch.__version__, "on Python", platform.python_version(), "at", platform.node(),
      "sees", count, kind, "devices" if count else "", flush=True)
"""
WALLTIME = "10m"


def on_node(
    catalogue: Catalogue,
    asked: Asked,
    *,
    yes: bool,
    ask: Callable[[str], bool] | None,
    show: Callable[[str], None],
    timeout: float | None = None,
) -> Check:
    """Send the job, wait for it, and say what it printed.

    Args:
        yes: the cost is confirmed. ask: puts a question to a person. show: is handed the cost first.
        timeout: seconds to wait; the job is then cancelled.

    Raises:
        RequestError: no site was named. LimitError: the cost was not confirmed.
    """
    from maple_parsl import api

    if asked.site is None:
        raise RequestError("--node sends a job: name the site with --site")
    site = catalogue.get(asked.site).site
    least = site.scheduler.min_walltime
    walltime = str(least) if least and least > 600 else WALLTIME
    stated: dict[str, Any] = {"site": asked.site, "account": asked.account, "queue": asked.queue}
    job: dict[str, Any] = {} if site.scheduler.kind == "none" else {"nodes": 1, "walltime": walltime}

    def shown(plan: Plan) -> None:
        cost = "nothing" if plan.scheduler == "none" else str(Cost.of(plan))
        show(f"a job of one node that imports torch; cost: {cost}")
        if plan.scheduler != "none" and not yes and (ask is None or not ask("Submit it?")):
            raise LimitError("not confirmed (--yes); nothing was submitted")

    with tempfile.TemporaryDirectory(prefix=".maple-doctor-", dir=catalogue.cwd) as folder:
        script = Path(folder) / "probe.py"
        script.write_text(_PROBE, encoding="utf-8")
        try:
            request = Request.of(**job, **stated, script=str(script), **dict(asked.environment))
            run = api.run(request=request, yes=True, show=shown, cwd=catalogue.cwd)
        except LimitError:
            raise
        except MapleError as error:
            return Check("environment on a node", "fault", str(error))
        try:
            outcome = run.result(timeout)
        except (TimeoutError, KeyboardInterrupt):
            run.cancel()
            raise
    said = [row.partition("maple-doctor: ")[2] for row in str(run.logs(-16384)).splitlines() if "maple-doctor: " in row]
    if outcome.ok and said:
        return Check("environment on a node", "ok", said[0])
    remedy = f"maple logs {run.id} shows what it printed; maple diagnose {run.id} looks for the cause"
    return Check("environment on a node", "fault", outcome.cause or "it printed nothing", remedy)
