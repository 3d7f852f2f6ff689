"""``maple doctor``: this machine, this site, this configuration."""

from __future__ import annotations

import os

from maple_parsl.cli.options import Json

_MARKS = {"ok": "ok", "note": "note", "fault": "FAULT"}


def command(json: Json = False) -> int:
    """What on this machine stands in the way of a launch, and what to do; exit code 1 when something does."""
    from maple_parsl.catalogue import Catalogue
    from maple_parsl.doctor import examine
    from maple_parsl.folders import current

    checks = examine(Catalogue.load(os.environ, current()))
    faulty = any(check.verdict == "fault" for check in checks)
    if json:
        from maple_parsl.cli.output import emit_json

        emit_json({"ok": not faulty, "checks": checks})
        return int(faulty)
    from rich.table import Table

    from maple_parsl.cli.output import clean, console

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in checks:
        saw = clean(check.saw) + (f"\n→ {clean(check.remedy)}" if check.remedy else "")
        style = {"ok": "green", "note": "yellow", "fault": "bold red"}[check.verdict]
        table.add_row(_MARKS[check.verdict], check.name, saw, style=style if check.verdict == "fault" else None)
    console().print(table)
    return int(faulty)
