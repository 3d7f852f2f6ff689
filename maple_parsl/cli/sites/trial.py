"""``maple sites test``: a preflight on two nodes that shows whether the site's file is right."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from maple_parsl.errors import LimitError

if TYPE_CHECKING:
    from maple_parsl.plan import Plan
    from maple_parsl.request import Request
    from maple_parsl.runs.run import Run


def trial(site: str, fields: Mapping[str, Any]) -> Request:
    """What the test launches: the preflight of the smallest training, and no training."""
    from maple_parsl.request import Request

    return Request.of(model="gpt", paradigm="ddp", site=site, preflight="only", name="site-test", **fields)


def try_site(site: str, fields: Mapping[str, Any], *, run_root: str | None, yes: bool, as_json: bool) -> int:
    """Show the cost, ask, launch, wait, and say what came of it."""
    import maple_parsl.api as api
    from maple_parsl.cli.run import asker, followed

    ask = None if as_json else asker()
    confirm = _confirmed(ask, yes)
    run: Run = api.run(request=trial(site, fields), yes=True, ask=ask, show=confirm, run_root=run_root)
    code = followed(run, follow=False, json=as_json)
    return _judged(site, fields["nodes"], run, as_json) if code == 0 else code


def _judged(site: str, nodes: int, run: Run, as_json: bool) -> int:
    """What the preflight of a job that ended well says of the site: 10 where it could not be done."""
    from maple_parsl.cli.output import clean

    verdict = run.status().preflight or {}
    found = [said for said in verdict.get("findings", []) if isinstance(said, dict)]
    undone = not verdict or any(said.get("class") == "PREFLIGHT" for said in found)
    if not as_json:
        for said in found:
            print(clean(f"{said.get('severity')}: {said.get('message')} [{said.get('class')}]"))
        if undone:
            print(f"{site} took the job, but the test could not be done in full: maple logs {run.id}")
        else:
            but = ", with what is said above" if found else ""
            place = "1 node" if nodes == 1 else f"{nodes} nodes"
            print(f"{site} works: all {verdict.get('ranks')} ranks on {place} met and made a step together{but}")
    return 10 if undone else 0


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
