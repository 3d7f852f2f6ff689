"""``maple sites test``: a bounded launch on two nodes that shows whether the site's file is right."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from maple_parsl.errors import LimitError

if TYPE_CHECKING:
    from maple_parsl.plan import Plan
    from maple_parsl.request import Request
    from maple_parsl.runs.run import Run

STEPS = 5


def trial(site: str, fields: Mapping[str, Any]) -> Request:
    """What the test launches: the smallest training, for a few steps."""
    from maple_parsl.request import Request

    return Request.of(model="gpt", paradigm="ddp", site=site, args=("--steps", str(STEPS)), name="site-test", **fields)


def try_site(site: str, fields: Mapping[str, Any], *, run_root: str | None, yes: bool, as_json: bool) -> int:
    """Show the cost, ask, launch, wait, and say what came of it."""
    import maple_parsl.api as api
    from maple_parsl.cli.run import asker, followed

    ask = None if as_json else asker()
    confirm = _confirmed(ask, yes)
    run: Run = api.run(request=trial(site, fields), yes=True, ask=ask, show=confirm, run_root=run_root)
    code = followed(run, follow=False, json=as_json)
    if code == 0 and not as_json:
        print(f"{site} works: {fields['nodes']} nodes trained {STEPS} steps together")
    return code


def _confirmed(ask: Callable[[str], bool] | None, yes: bool) -> Callable[[Plan], None]:
    """Shows what the test costs and, however little that is, has a person agree."""

    def show(plan: Plan) -> None:
        from maple_parsl.cli.output import clean
        from maple_parsl.runs.cost import Cost

        cost = Cost.of(plan)
        sys.stderr.write(f"{clean(str(cost))}\n")
        for finding in plan.findings:
            sys.stderr.write(f"{finding.severity}: {clean(finding.message)}\n")
        if yes or plan.scheduler == "none":
            return
        if ask is None:
            raise LimitError(f"{cost}; a test needs a confirmation: --yes. Nothing was submitted")
        if not ask("Submit this test?"):
            raise LimitError("not confirmed; nothing was submitted")

    return show
