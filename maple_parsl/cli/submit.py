"""``maple submit``: check a hand-written script, submit it once, unchanged, and follow it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from maple_parsl.cli.options import Json, MaxNodeHours, Yes

app = typer.Typer(add_completion=False, rich_markup_mode=None)
_WORDS = "maple.words"


class SubmitCommand(TyperCommand):
    """A verb whose words after ``--`` are for sbatch or qsub."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        cut = args.index("--") if "--" in args else len(args)
        ctx.meta[_WORDS] = tuple(args[cut + 1 :])
        return list(super().parse_args(ctx, args[:cut]))


@app.command(cls=SubmitCommand)
def submit(
    context: typer.Context,
    script: Annotated[Path, typer.Argument(help="The job script. Options for sbatch or qsub follow --.")],
    site: Annotated[str | None, typer.Option("--site", help="Site it is for; found on this machine if absent.")] = None,
    yes: Yes = False,
    max_node_hours: MaxNodeHours = None,
    force: Annotated[bool, typer.Option("--force", help="Submit in spite of findings of severity error.")] = False,
    run_root: Annotated[str | None, typer.Option("--run-root", help="Folder for run directories.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end.")] = False,
    json: Json = False,
) -> int:
    """Check a script, submit it exactly once without changing a byte, and follow it. Exit code 10 with --wait: it
    did not succeed.
    """
    from maple_parsl.catalogue import Catalogue
    from maple_parsl.cli.output import clean
    from maple_parsl.cli.run import asker, followed, submitted
    from maple_parsl.folders import current
    from maple_parsl.runs import hand
    from maple_parsl.runs.start import Terms

    catalogue = Catalogue.load(os.environ, current())
    found = hand.examined(catalogue.cwd / script, site, catalogue)
    if not json:
        for finding in found.report.findings:
            sys.stderr.write(clean(f"{finding.severity}: line {finding.line}: {finding.message} [{finding.rule}]\n"))
    terms = Terms(yes, None if json else asker(), max_node_hours, force, run_root=run_root)
    run = hand.start(found, context.meta[_WORDS], terms, catalogue.cwd)
    return followed(run, follow=False, json=json) if wait else submitted(run, json)
