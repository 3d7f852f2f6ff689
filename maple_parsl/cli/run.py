"""``maple run``: plan, show, confirm, submit once, and follow."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maple_parsl.cli.options import Json, LaunchCommand, launch_options

if TYPE_CHECKING:
    from maple_parsl.plan import Plan
    from maple_parsl.request import Request
    from maple_parsl.runs.run import Run

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=LaunchCommand)
@launch_options
def run(
    request: Request,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="The cost is confirmed.")] = False,
    max_node_hours: Annotated[
        float | None, typer.Option("--max-node-hours", help="Refuse a job that could cost more.", metavar="H")
    ] = None,
    here: Annotated[bool, typer.Option("--here", help="Launch inside the allocation this shell is in.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Submit in spite of findings of severity error.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check everything, write the files, submit nothing.")
    ] = False,
    run_root: Annotated[
        str | None, typer.Option("--run-root", help="Folder for run directories, seen by all nodes.", metavar="DIR")
    ] = None,
    wait: Annotated[
        bool | None, typer.Option("--wait/--no-wait", help="Wait for the end (local: unless told not to).")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Show the log while it is written.")] = False,
    resubmit: Annotated[
        str | None, typer.Option("--resubmit", help="Submit run ID again, of which no job exists.", metavar="ID")
    ] = None,
    json: Json = False,
) -> int:
    """Launch, once. Exit code 10 with --wait or --follow: the run did not succeed."""
    import maple_parsl.api as api

    if resubmit is not None:
        from maple_parsl.runs.run import Run

        started = Run.open(resubmit).resubmit()
    else:
        started = api.run(
            request=request,
            dry_run=dry_run,
            yes=yes,
            max_node_hours=max_node_hours,
            here=here,
            force=force,
            run_root=run_root,
            ask=None if json else asker(),
            show=None if json else _show,
        )
    if dry_run and resubmit is None:
        return _rehearsed(started, json)
    stay = follow or (wait if wait is not None else started.summary.scheduler == "none" and not json)
    if not stay:
        return _submitted(started, json)
    return _followed(started, follow, json)


def asker() -> Any:
    """A function that puts a question to the person at the terminal; None when nobody is there."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None

    def ask(question: str) -> bool:
        from maple_parsl.cli.output import clean

        sys.stderr.write(f"{clean(question)} [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    return ask


def _show(plan: Plan) -> None:
    from maple_parsl.cli.output import console
    from maple_parsl.cli.show import print_findings, print_plan

    screen = console(stderr=True)
    print_plan(screen, plan)
    print_findings(screen, plan.findings)


def _rehearsed(run: Run, json: bool) -> int:
    if json:
        from maple_parsl.cli.output import emit_json

        emit_json(
            {"run": run.id, "job_id": None, "state": "not_submitted", "run_dir": str(run.run_dir), "dry_run": True}
        )
    else:
        print(f"nothing was submitted; the script is {run.run_dir}/script.sh")
    return 0


def _submitted(run: Run, json: bool) -> int:
    status = run.status()
    if json:
        from maple_parsl.cli.output import emit_json

        emit_json({"run": run.id, "job_id": status.job_id, "state": status.state.value, "run_dir": status.run_dir})
    else:
        print(f"run {run.id} is job {status.job_id}; maple status {run.id}, maple logs -f {run.id}")
    return 0


def _followed(run: Run, follow: bool, json: bool) -> int:
    from maple_parsl.cli.follow import attend, detached

    if not json:
        sys.stderr.write(f"run {run.id}; Ctrl-C leaves it running\n")
    try:
        outcome = attend(run, show_log=follow and not json, quiet=json)
    except KeyboardInterrupt:
        detached(run)
        raise
    if json:
        from maple_parsl.cli.output import emit_json

        emit_json({"run": run.id, "job_id": outcome.job_id, "state": outcome.state.value, "outcome": outcome.to_dict()})
    else:
        from maple_parsl.cli.output import clean

        print(clean(str(outcome)))
        if not outcome.ok and not follow:
            _print_end(run)
    return 0 if outcome.ok else 10


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
