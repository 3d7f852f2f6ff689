"""``maple sites``: one line per site."""

from __future__ import annotations

from typing import Any

from maple_parsl.catalogue import Catalogue, SiteRecord
from maple_parsl.cli.output import clean, console, emit_json
from maple_parsl.errors import ConfigurationError

_SCHEDULERS = {"slurm": "Slurm", "pbs": "PBS", "lsf": "LSF", "none": "none"}


def list_sites(everything: bool, as_json: bool) -> None:
    """Print all sites; one that cannot be read is shown with the reason, and hides no other."""
    catalogue = Catalogue.load()
    names = sorted((*catalogue.names(), *(catalogue.retired() if everything else ())))
    rows = [_row(catalogue, name) for name in names]
    if as_json:
        emit_json({"sites": rows, "notices": catalogue.notices})
        return
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in (
        "NAME",
        "TITLE",
        "SCHEDULER",
        "KINDS (DEVICES)",
        "QUEUES",
        "STATUS",
        "EXECUTED ON",
        "CHECKED",
    ):
        table.add_column(title, overflow="fold", no_wrap=title in ("NAME", "CHECKED"))
    sound = [row for row in rows if "error" not in row]
    for row in sound:
        kinds = ", ".join(f"{kind['name']} ({kind['devices']})" for kind in row["kinds"])
        queues = "unknown" if row["queues"] is None else str(row["queues"])
        cells = [row["name"], row["title"], _SCHEDULERS[row["scheduler"]], kinds, queues, row["status"]]
        table.add_row(*(clean(cell) for cell in [*cells, executed_on(row), row["checked_on"]]))
    out = console()
    if sound:
        out.print(table)
    else:
        out.print("no site is known; maple sites add NAME writes a file to fill in")
    errors = console(stderr=True)
    for row in rows:
        if "error" in row:
            errors.print(clean(f"{row['name']} cannot be used: {row['error']}"))
    for notice in catalogue.notices:
        errors.print(clean(f"note: {notice}"))


def executed_on(row: dict[str, Any]) -> str:
    """Where jobs of this description really ran."""
    if row["scheduler"] == "none":
        return row["executed_on"] or "this machine"
    return row["executed_on"] or f"not executed on a real {_SCHEDULERS[row['scheduler']]}"


def _row(catalogue: Catalogue, name: str) -> dict[str, Any]:
    try:
        return summary(catalogue.get(name))
    except ConfigurationError as error:
        return {"name": name, "error": str(error)}


def summary(record: SiteRecord) -> dict[str, Any]:
    """The line of one site."""
    site = record.site
    return {
        "name": site.name,
        "title": site.title,
        "scheduler": site.scheduler.kind,
        "kinds": [{"name": name, "devices": kind.devices, "title": kind.title} for name, kind in site.kinds.items()],
        "queues": len(site.queues.entry) if site.queues else None,
        "status": site.status,
        "executed_on": site.executed_on,
        "checked_on": record.oldest.isoformat(),
        "files": [str(file) for file in record.files],
    }
