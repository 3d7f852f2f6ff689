"""``maple run``: plan, show, confirm, submit once, and follow."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maple_parsl.cli.options import (
    DryRun,
    Follow,
    Json,
    LaunchCommand,
    MaxNodeHours,
    RunRoot,
    Wait,
    Yes,
    launch_options,
)
from maple_parsl.errors import RequestError

if TYPE_CHECKING:
    from maple_parsl.plan import Plan
    from maple_parsl.request import Request
    from maple_parsl.runs.outcome import Outcome
    from maple_parsl.runs.run import Run

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=LaunchCommand)
@launch_options
def run(
    request: Request,
    yes: Yes = False,
    max_node_hours: MaxNodeHours = None,
    here: Annotated[bool, typer.Option("--here", help="Launch inside the allocation this shell is in.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Submit in spite of findings of severity error.")] = False,
    dry_run: DryRun = False,
    run_root: RunRoot = None,
    via: Annotated[
        str | None,
        typer.Option("--via", help="The way to the site: here, globus, ssh, or with :ADDRESS.", metavar="WAY"),
    ] = None,
    wait: Wait = None,
    follow: Follow = False,
    array: Annotated[
        list[str] | None,
        typer.Option("--array", help="One run per value: NAME=V1,V2 or NAME=0-9 or @FILE; repeat.", metavar="SPEC"),
    ] = None,
    parallel: Annotated[int | None, typer.Option("--parallel", help="Most runs of --array at a time.")] = None,
    chain: Annotated[
        int | None, typer.Option("--chain", help="So many jobs, each going on from the one before.", metavar="N")
    ] = None,
    until_done: Annotated[
        bool, typer.Option("--until-done", help="Jobs one after the other until one succeeds (at most 8, or --chain).")
    ] = False,
    diff: Annotated[
        str | None, typer.Option("--diff", help="Show first what changed since run ID.", metavar="ID")
    ] = None,
    after: Annotated[list[str] | None, typer.Option("--after", help="Start when run ID succeeded.")] = None,
    after_any: Annotated[list[str] | None, typer.Option("--after-any", help="Start when run ID ended.")] = None,
    restarts: Annotated[
        int,
        typer.Option(
            "--restarts", help="While waiting, start again up to N times what can be put right or passes.", metavar="N"
        ),
    ] = 0,
    resubmit: Annotated[
        str | None, typer.Option("--resubmit", help="Submit run ID again, of which no job exists.", metavar="ID")
    ] = None,
    json: Json = False,
) -> int:
    """Launch, once. Exit code 10 with --wait or --follow: the run did not succeed."""
    terms: dict[str, Any] = {
        "yes": yes,
        "max_node_hours": max_node_hours,
        "force": force,
        "run_root": run_root,
        "after": after or (),
        "after_any": after_any or (),
    }
    if array or chain or until_done:
        if restarts:
            raise RequestError("--restarts is for a single run; a chain goes on by itself")
        if dry_run or here or resubmit or via or (array and (chain or until_done)):
            raise RequestError(
                "--array and --chain submit jobs here; leave out --dry-run, --here, --via, --resubmit and the other"
            )
        terms |= {"ask": None if json else asker(), "show": _shower(diff, json)}
        return _several(request, array, parallel, chain, terms, bool(wait or follow), json)
    if parallel is not None:
        raise RequestError("--parallel goes with --array")
    if resubmit is not None:
        from maple_parsl.runs.run import Run

        return _attended(Run.open(resubmit).resubmit(), wait, follow, json)
    if restarts and not (wait or follow or dry_run):
        raise RequestError("--restarts needs --wait or --follow: nothing starts a run again when nobody waits for it")
    terms |= {"here": here, "via": via, "restarts": restarts}
    return launch(request, json=json, wait=wait, follow=follow, dry_run=dry_run, diff=diff, **terms)


def launch(
    request: Request,
    *,
    json: bool,
    wait: bool | None,
    follow: bool,
    dry_run: bool,
    diff: str | None = None,
    **terms: Any,
) -> int:
    """Launch a request and stay with it as far as was asked; ``terms`` are those of :func:`maple_parsl.run`."""
    import maple_parsl.api as api

    ask = None if json else asker()
    started = api.run(request=request, dry_run=dry_run, ask=ask, show=_shower(diff, json), **terms)
    if dry_run:
        return _rehearsed(started, json)
    return _attended(started, wait, follow, json)


def _attended(started: Run, wait: bool | None, follow: bool, json: bool) -> int:
    stay = follow or (wait if wait is not None else started.summary.scheduler == "none" and not json)
    if not stay:
        return submitted(started, json)
    return followed(started, follow, json)


def _several(
    request: Request,
    array: list[str] | None,
    parallel: int | None,
    links: int | None,
    terms: dict[str, Any],
    wait: bool,
    json: bool,
) -> int:
    import maple_parsl.api as api
    from maple_parsl.cli import sweep

    if array:
        group = api.map(sweep.combinations(array), request=request, parallel=parallel, **terms)
    else:
        group = api.chain(links, request=request, **terms)
    if wait:
        return sweep.ended(group, json)
    sweep.show(group, json)
    return 0


def asker() -> Any:
    """How a person at a terminal is asked; None where nobody is there."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None

    def ask(question: str) -> bool:
        from maple_parsl.cli.output import clean

        sys.stderr.write(f"{clean(question)} [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    return ask


def _shower(diff: str | None, json: bool) -> Callable[[Plan], None] | None:
    if json:
        return None
    if diff is None:
        return _show
    from maple_parsl.runs.run import Run

    run = Run.open(diff)

    def show(plan: Plan) -> None:
        from maple_parsl.cli.output import clean
        from maple_parsl.runs.changes import changes

        _show(plan)
        sys.stderr.write(clean(f"since run {run.id}:\n{changes(run.plan, plan)}\n"))

    return show


def _show(plan: Plan) -> None:
    from maple_parsl.cli.output import clean, console
    from maple_parsl.cli.show import print_findings, print_plan

    screen = console(stderr=True)
    if why := plan.provenance.get("site"):
        screen.print(f"site    {plan.site}, chosen: {clean(why.why)}", highlight=False, markup=False)
    print_plan(screen, plan)
    print_findings(screen, plan.findings)


def _rehearsed(run: Run, json: bool) -> int:
    if json:
        from maple_parsl.cli.output import emit_json

        emit_json(
            {"run": run.id, "job_id": None, "state": "not_submitted", "run_dir": str(run.run_dir), "dry_run": True}
        )
    else:
        print(f"nothing was submitted; the script is {run.script}")
    return 0


def submitted(run: Run, json: bool) -> int:
    """Say what was submitted."""
    status = run.status()
    if json:
        from maple_parsl.cli.output import emit_json

        emit_json({"run": run.id, "job_id": status.job_id, "state": status.state.value, "run_dir": status.run_dir})
    else:
        print(f"run {run.id} is job {status.job_id}; maple status {run.id}, maple logs -f {run.id}")
    return 0


def followed(run: Run, follow: bool, json: bool) -> int:
    """Wait for the end and print it, and of what was started in its place; 0 when the last succeeded, else 10."""
    from maple_parsl.cli.follow import attend, detached, restarted

    code, last = 0, run
    current: Run | None = run
    while current is not None:
        last = current
        if not json:
            sys.stderr.write(f"run {last.id}; Ctrl-C leaves it running\n")
        try:
            outcome = attend(last, show_log=follow and not json, quiet=json)
        except KeyboardInterrupt:
            detached(last)
            raise
        code = 0 if outcome.ok else 10
        if not json:
            _print_outcome(last, outcome, follow)
        current = restarted(last)
    if json:
        from maple_parsl.cli.output import emit_json

        outcome = run.result()
        state = outcome.state.value
        emit_json({"run": last.id, "job_id": outcome.job_id, "state": state, "outcome": outcome.to_dict()})
    return code


def _print_outcome(run: Run, outcome: Outcome, follow: bool) -> None:
    from maple_parsl.cli.output import clean

    print(clean(str(outcome)))
    _print_sync(run)
    if not outcome.ok and not follow:
        _print_end(run)


def _print_sync(run: Run) -> None:
    """How to send on what the run kept back for want of a network."""
    from maple_parsl.cli.output import clean
    from maple_parsl.runs.sync import command

    if line := command(run):
        print(f"the nodes reach no network; to send on what was logged: {clean(line)}")


def _print_end(run: Run, lines: int = 12) -> None:
    """The end of a failed run's log, where its reason stands more often than not."""
    from maple_parsl.cli.output import clean
    from maple_parsl.errors import MapleError

    try:
        end = clean(run.logs(-8192)).rstrip().split("\n")[-lines:]
    except MapleError as error:
        sys.stderr.write(f"{clean(str(error))}\n")
        return
    if any(end):
        print("", "the end of its log:", *(f"  {line}" for line in end), sep="\n")
        print("", f"maple diagnose {run.id} looks for the cause, maple logs {run.id} prints all of it", sep="\n")
