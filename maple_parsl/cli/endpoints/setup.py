"""``maple endpoints setup``: the files of an endpoint for a site, and the commands to type there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_FILES = ("config.yaml", "user_config_template.yaml.j2", "user_config_schema.json")


def command(
    site: Annotated[str, typer.Argument(help="The site.")],
    kind: Annotated[
        str, typer.Option(help="login-node (submits jobs), inference (holds a model), or multi-user (for a facility).")
    ] = "login-node",
    write: Annotated[Path | None, typer.Option(help="Write the files into this new folder.", metavar="DIR")] = None,
) -> int:
    """Show, or write, an endpoint's configuration for a site, with the three commands to type there."""
    from maple_parsl.catalogue import Catalogue
    from maple_parsl.runs import files

    record = Catalogue.load().get(site)
    source = folder_of(kind, record.site.scheduler.kind)
    name = f"maple-{record.site.name}"
    texts = {file: (source / file).read_text(encoding="utf-8") for file in _FILES}
    if write is not None:
        files.make_folder(write)
        for file, text in texts.items():
            files.write(write / file, text)
        print(f"wrote {', '.join(texts)} to {write}")
    else:
        for file, text in texts.items():
            print(f"--- {file}\n{text}")
    print(
        f"""At {record.site.title}, in a Python environment of yours there:
  1. pip install globus-compute-endpoint
  2. globus-compute-endpoint configure {name}   (then copy the three files into ~/.globus_compute/{name}/)
  3. globus-compute-endpoint start {name} --detach
It prints the endpoint's id. Here, in ~/.config/maple/sites/{record.site.name}.toml:
  extends = "{record.site.name}"
  [remote]
  source = "my endpoint"
  checked_on = (today, as 2026-12-31)
  globus_endpoint = "(the id)"
  [defaults]
  run_root = "(a folder there that all nodes see)\""""
    )
    return 0


def folder_of(kind: str, scheduler: str) -> Path:
    """The shipped configuration of that kind.

    Raises:
        UnknownNameError: there is none.
    """
    from maple_parsl.data import data_folder
    from maple_parsl.errors import UnknownNameError

    wanted = f"{kind}-{scheduler}" if kind == "multi-user" else kind
    root = data_folder("endpoints")
    if not (root / wanted / _FILES[0]).is_file():
        known = sorted(path.parent.name for path in root.glob(f"*/{_FILES[0]}"))
        raise UnknownNameError("endpoint configuration", wanted, known)
    return root / wanted
