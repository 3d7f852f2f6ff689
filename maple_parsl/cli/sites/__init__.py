"""``maple sites``: what Maple knows about clusters, and where it knows it from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    invoke_without_command=True,
    help="The sites Maple knows: list, show, check, add, test.",
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
    probe: Annotated[bool, typer.Option("--probe", help="Draft it from read-only commands of this machine.")] = False,
    from_script: Annotated[
        Path | None, typer.Option("--from-script", help="Draft it from a job script that works there.")
    ] = None,
    json: Json = False,
) -> None:
    """Write a site file to fill in: a new site, or your own changes to a known one."""
    from maple_parsl.cli.sites.add import add_site

    add_site(name, scheduler, path, force, json, probe, from_script)


@app.command("test")
def trial(
    name: Name,
    account: Annotated[str | None, typer.Option("--account", "-A", help="Account to charge.")] = None,
    queue: Annotated[str | None, typer.Option("--queue", "-q", help="Queue, partition or QOS.")] = None,
    nodes: Annotated[int, typer.Option("--nodes", "-N", min=1, help="Nodes.")] = 2,
    gpus_per_node: Annotated[int | None, typer.Option("--gpus-per-node", min=1, help="Devices used per node.")] = None,
    walltime: Annotated[str, typer.Option("--walltime", "-t", help="Most time the test may take.")] = "10m",
    module: Annotated[list[str] | None, typer.Option("--module", help="Environment module to load; repeat.")] = None,
    venv: Annotated[str | None, typer.Option("--venv", help="Virtual environment with torch.")] = None,
    conda: Annotated[str | None, typer.Option("--conda", help="Conda environment with torch.")] = None,
    python: Annotated[str | None, typer.Option("--python", help="Python interpreter with torch.")] = None,
    run_root: Annotated[str | None, typer.Option("--run-root", help="Folder that all nodes see.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="The cost is confirmed.")] = False,
    json: Json = False,
) -> Any:
    """A preflight on two nodes, to see that the site's file is right. The cost is shown and asked first.

    Ranks, devices, cores, meeting and one small step are looked at. Exit code 10: it did not succeed, or could not be
    done, as without torch.
    """
    from maple_parsl.cli.sites.trial import try_site

    environment = {"modules": tuple(module or ()) or None, "venv": venv, "conda": conda, "python": python}
    shape = {"nodes": nodes, "gpus_per_node": gpus_per_node, "walltime": walltime}
    fields = {"account": account, "queue": queue, **shape, **environment}
    return try_site(name, fields, run_root=run_root, yes=yes, as_json=json)


@app.command()
def here(json: Json = False) -> Any:
    """Which site this machine is, and how that was found. Exit code 1: it cannot be told."""
    from maple_parsl.cli.sites.here import show_here

    return show_here(json)
