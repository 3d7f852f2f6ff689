"""``maple endpoints probe``: one short call to a site; it starts no block and spends nothing."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from maple_parsl.cli.options import Json


def command(
    site: Annotated[str, typer.Argument(help="The site.")],
    via: Annotated[str | None, typer.Option(help="The way there, where not your file's.", metavar="WAY")] = None,
    deadline: Annotated[float, typer.Option(help="Seconds to wait for the answer.")] = 60.0,
    json: Json = False,
) -> int:
    """Ask a site for its host, Python, Parsl and scheduler through its endpoint or ssh."""
    from maple_parsl.catalogue import Catalogue
    from maple_parsl.cli.output import clean, emit_json
    from maple_parsl.errors import NotHereError
    from maple_parsl.runs.away.start import root_of
    from maple_parsl.runs.start import Terms
    from maple_parsl.transport import connect
    from maple_parsl.transport.via import configured, stated

    record = Catalogue.load().get(site)
    way = stated(via, record) if via else configured(record)
    if way is None:
        raise NotHereError(f"your files name no way to {site}; maple endpoints setup {site}")
    began = time.monotonic()
    said = connect(way).call("where", deadline=deadline, root=root_of(record, Terms()))
    said = {"site": site, "via": str(way), "seconds": round(time.monotonic() - began, 2), **said}
    said.pop("missing", None)
    if json:
        emit_json(said)
    else:
        for key, value in said.items():
            shown = ", ".join(value) if isinstance(value, list) else value
            print(clean(f"{key:<12} {shown if shown != '' else 'none'}"))
    return 0
