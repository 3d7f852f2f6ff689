"""``maple port``: carry a working script to another site, as a new script or a diff. Nothing is submitted."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maple_parsl.cli.options import Json

if TYPE_CHECKING:
    from maple_parsl.port import Ported


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The script that works.")],
    to: Annotated[str, typer.Option("--to", metavar="SITE", help="The site to carry it to.")],
    source: Annotated[
        str | None, typer.Option("--from", metavar="SITE", help="The site it works on; guessed where it says so.")
    ] = None,
    account: Annotated[str | None, typer.Option("--account", "-A", help="Account to charge there.")] = None,
    queue: Annotated[str | None, typer.Option("--queue", "-q", help="Queue, partition or QOS there.")] = None,
    nodes: Annotated[int | None, typer.Option("--nodes", "-N", help="Nodes, where not the same number.")] = None,
    walltime: Annotated[str | None, typer.Option("--walltime", "-t", help="Time limit, where not the same.")] = None,
    gpus_per_node: Annotated[int | None, typer.Option("--gpus-per-node", help="Devices used on each node.")] = None,
    node_kind: Annotated[
        str | None, typer.Option("--node-kind", help="Kind of node, where the site has several.")
    ] = None,
    memory: Annotated[str | None, typer.Option("--memory", help="Host memory per node, such as 64G.")] = None,
    module: Annotated[list[str] | None, typer.Option("--module", help="Module to load there; repeat.")] = None,
    venv: Annotated[str | None, typer.Option("--venv", help="Virtual environment there.")] = None,
    conda: Annotated[str | None, typer.Option("--conda", help="Conda environment there.")] = None,
    container: Annotated[str | None, typer.Option("--container", help="Container image there.")] = None,
    python: Annotated[str | None, typer.Option("--python", help="Python interpreter there.")] = None,
    template: Annotated[
        str | None, typer.Option("--template", help="How the framework starts, such as torchrun.")
    ] = None,
    directive: Annotated[list[str] | None, typer.Option("--directive", help="Scheduler option; repeat.")] = None,
    diff: Annotated[bool, typer.Option("--diff", help="Print the difference instead of the new script.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="Write the new script here.")] = None,
    json: Json = False,
) -> int:
    """Carry a working script to another site: program, arguments and your own lines word for word.

    What cannot be translated is listed; what the site wants and nobody stated is asked for.
    Exit code 0: done. 1: the checks find an error in the new script. 2, 4: something must be stated or changed first.
    """
    import maple_parsl.api as api
    from maple_parsl.checking.difference import unified
    from maple_parsl.checking.files import read_file, save

    data = read_file(file)
    stated: dict[str, Any] = {
        "account": account, "queue": queue, "nodes": nodes, "walltime": walltime, "gpus_per_node": gpus_per_node,
        "node_kind": node_kind, "memory": memory, "modules": tuple(module or ()) or None, "venv": venv,
        "conda": conda, "container": container, "python": python, "template": template,
        "directives": tuple(directive or ()) or None,
    }  # fmt: skip
    made = api.port(data.decode("utf-8", "surrogateescape"), to=to, source=source, name=file.name, **stated)
    new = made.text.encode("utf-8", "surrogateescape")
    changes = unified(data, new, str(file))
    if out is not None:
        save(out, new, file)
    if json:
        from maple_parsl.cli.output import emit_json

        dumped = made.model_dump(mode="json", by_alias=True, exclude={"plan"})
        dumped["text"] = new.decode("utf-8", "replace")
        emit_json({**dumped, "file": str(file), "correct": made.correct, "diff": changes})
    else:
        _print(made, changes if diff else "" if out else made.text)
    return 0 if made.correct else 1


def _print(made: Ported, text: str) -> None:
    from maple_parsl.terminal import clean

    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(clean(text).encode(encoding, "replace").decode(encoding))
    if made.source is None:
        sys.stderr.write("note: the site this was written for is not known; with --from more of it is recognised\n")
    for one in made.todo:
        sys.stderr.write(f"note: {' '.join(clean(one).split())}\n")
    for finding in made.findings:
        if finding.severity != "note":
            sys.stderr.write(f"{finding.severity}: line {finding.line}: {clean(finding.message)}\n")
