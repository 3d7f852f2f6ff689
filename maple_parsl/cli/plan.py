"""``maple plan``: what a launch would be, exactly, without submitting anything."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maple_parsl.cli.options import Json, LaunchCommand, launch_options

if TYPE_CHECKING:
    from maple_parsl.plan import Plan
    from maple_parsl.request import Request

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(cls=LaunchCommand)
@launch_options
def plan(
    request: Request,
    script_only: Annotated[bool, typer.Option("--script-only", help="Print the batch script alone.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="Write job.sh, and what it starts, to a folder.")] = None,
    map: Annotated[bool, typer.Option("--map", help="Only who runs where: node, rank, device, cores.")] = False,
    why: Annotated[bool, typer.Option("--why", help="Only where each value comes from, with its source.")] = False,
    map_svg: Annotated[Path | None, typer.Option("--map-svg", help="Save that map as an SVG file.")] = None,
    diff: Annotated[str | None, typer.Option("--diff", help="What changed since run ID.", metavar="ID")] = None,
    json: Json = False,
) -> int:
    """Say exactly what a launch would be: script, shape, cost, and where each value comes from."""
    import maple_parsl.api as api
    from maple_parsl.cli.output import emit_bytes

    made = api.plan(request=request)
    if diff is not None:
        return show_changes(diff, made, json)
    if out is not None:
        _write(made, out)
    if map_svg is not None:
        from maple_parsl.picture import svg

        _save(map_svg, svg(made))
    if json:
        from maple_parsl.cli.output import emit_json

        emit_json(
            {
                "script": made.script,
                "request": made.request.model_dump(mode="json", exclude_defaults=True),
                "ranks": made.ranks.to_dict(),
                "findings": [finding.model_dump(mode="json", by_alias=True) for finding in made.findings],
                "plan": made.model_dump(mode="json", by_alias=True),
            }
        )
    elif script_only:
        emit_bytes(made.script.encode())
        _say_findings(made)
    else:
        _show(made, map, why)
    if map_svg is not None and not json:
        sys.stderr.write(f"map written to {map_svg}\n")
    if out is not None and not json:
        sys.stderr.write(f"written to {out}: submit job.sh from that folder's file system\n")
    return 4 if any(finding.severity == "error" for finding in made.findings) else 0


def show_changes(earlier: str, made: Plan, json: bool) -> int:
    """Print what changed since an earlier run."""
    from maple_parsl.cli.output import clean, emit_json
    from maple_parsl.runs.changes import changes
    from maple_parsl.runs.run import Run

    run = Run.open(earlier)
    found = changes(run.plan, made)
    if json:
        emit_json({"since": run.id, "stated": found.stated, "script": found.script})
    else:
        print(f"since run {run.id}:\n{clean(str(found))}")
    return 0


def _show(made: Plan, map: bool, why: bool) -> None:
    """The script, who runs where, and last, where the eye is, what it amounts to and what to do next."""
    from maple_parsl.cli.output import console
    from maple_parsl.cli.show import print_findings, print_plan, print_script, print_why

    screen = console()
    if not (map or why):
        print_script(screen, made)
    if why:
        print_why(screen, made)
    if map or not why:
        from maple_parsl.picture import table

        screen.print(table(made, None if map else 2))
        screen.print()
    print_plan(screen, made)
    print_findings(screen, made.findings)
    screen.print("nothing was submitted: maple run with the same words does it; --script-only prints the whole script")


def _say_findings(made: Plan) -> None:
    from maple_parsl.cli.output import clean

    for finding in made.findings:
        if finding.severity != "note":
            fix = f"; {clean(finding.fix)}" if finding.fix else ""
            sys.stderr.write(f"{finding.severity}: {clean(finding.message)}{fix}\n")


def _write(made: Plan, folder: Path) -> None:
    from maple_parsl.runs.files import explained
    from maple_parsl.runs.prepare import fill

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise explained(folder, error, "created") from None
    fill(made, folder, "job.sh")


def _save(path: Path, text: str) -> None:
    from maple_parsl.runs.files import explained

    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise explained(path, error, "written") from None
