"""``maple sites``: one line per site."""

from __future__ import annotations

from typing import Any

from maple_parsl.catalogue import Catalogue, SiteRecord
from maple_parsl.cli.output import clean, console, emit_json
from maple_parsl.errors import ConfigurationError

_WIDE = 100  # columns from which on titles and queues are shown
SCHEDULERS = {"slurm": "Slurm", "pbs": "PBS", "lsf": "LSF", "none": "none"}


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
    out = console()
    wide = out.width >= _WIDE
    for title in ("NAME", "TITLE", "SCHEDULER", "KINDS (DEVICES)", "QUEUES", "CHECKED"):
        if wide or title not in ("TITLE", "QUEUES"):
            table.add_column(title, overflow="fold", no_wrap=title not in ("TITLE", "KINDS (DEVICES)"))
    sound = [row for row in rows if "error" not in row]
    for row in sound:
        kinds = ", ".join(f"{kind['name']} ({kind['devices']})" for kind in row["kinds"])
        queues = "unknown" if row["queues"] is None else str(row["queues"])
        title = row["title"] if row["status"] == "production" else f"{row['title']}, {row['status']}"
        cells = [row["name"], title, SCHEDULERS[row["scheduler"]], kinds, queues, row["checked_on"]]
        table.add_row(*(clean(cell) for index, cell in enumerate(cells) if wide or index not in (1, 4)))
    if sound:
        out.print(table)
        out.print()
        for line in _untried(sound):
            out.print(clean(line), style="dim")
        out.print("maple sites show NAME prints the facts of one, with their sources", style="dim")
    else:
        out.print("no site is known; maple sites add NAME writes a file to fill in")
    errors = console(stderr=True)
    for row in rows:
        if "error" in row:
            errors.print(clean(f"{row['name']} cannot be used: {row['error']}"))
    for notice in catalogue.notices:
        errors.print(clean(f"note: {notice}"))


def _untried(rows: list[dict[str, Any]]) -> list[str]:
    """What has not been shown on the machines themselves."""
    ran = [row["name"] for row in rows if row["executed_on"] or row["scheduler"] == "none"]
    if len(ran) == len(rows):
        return []
    but = f" but {', '.join(ran)}" if ran else ""
    lines = [f"not executed on the machine itself: all{but}"]
    if any(row["scheduler"] == "pbs" and not row["executed_on"] for row in rows):
        lines.append("PBS scripts have run under stand-ins only, under no real PBS")
    return lines


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
