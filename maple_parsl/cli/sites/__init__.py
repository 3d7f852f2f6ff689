"""``maple sites``: what Maple knows about clusters, and where it knows it from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    invoke_without_command=True,
    help="The sites Maple knows: list, show, check, add.",
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Name = Annotated[str, typer.Argument(help="Name, alias, or path of a site file.")]


@app.callback()
def sites(
    context: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help="Retired sites too.")] = False,
    json: Json = False,
) -> None:
    """The sites Maple knows. Without a command: list them."""
    if context.invoked_subcommand is None:
        from maple_parsl.cli.sites.listing import list_sites

        list_sites(everything, json)
    elif json or everything:
        raise typer.BadParameter(f"give it after {context.invoked_subcommand}", param_hint="--json or --all")


@app.command()
def show(
    name: Name,
    origins: Annotated[bool, typer.Option("--origins", help="The file and source of each value.")] = False,
    json: Json = False,
) -> None:
    """Everything known about a site, with the sources."""
    from maple_parsl.cli.sites.show import show_site

    show_site(name, origins, json)


@app.command()
def check(
    names: Annotated[list[str] | None, typer.Argument(help="Sites; all of them without one.")] = None,
    max_age_days: Annotated[int, typer.Option(min=1, help="Facts checked longer ago are too old.")] = 180,
    json: Json = False,
) -> Any:
    """Read every site file, and find facts that were not checked for long.

    Exit code 1: some facts are too old. 3: a file cannot be used.
    """
    from maple_parsl.cli.sites.check import check_sites

    return check_sites(names or [], max_age_days, json)


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="Name of the new site, or of a known one to change.")],
    scheduler: Annotated[str | None, typer.Option(help="slurm or pbs; found on this machine if absent.")] = None,
    path: Annotated[Path | None, typer.Option(help="Folder; your own site folder if absent.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if there is one.")] = False,
    json: Json = False,
) -> None:
    """Write a site file to fill in: a new site, or your own changes to a known one."""
    from maple_parsl.cli.sites.add import add_site

    add_site(name, scheduler, path, force, json)


@app.command()
def here(json: Json = False) -> Any:
    """Which site this machine is, and how that was found. Exit code 1: it cannot be told."""
    from maple_parsl.cli.sites.here import show_here

    return show_here(json)
