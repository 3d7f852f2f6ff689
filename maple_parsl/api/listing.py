"""What is there: runs in the store, sites in the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from maple_parsl.api import composing

if TYPE_CHECKING:
    from maple_parsl.runs.run import Run


def runs(*, active: bool = False, site: str | None = None) -> list[Run]:
    """The runs in the store, newest first; those that cannot be read are left out (``maple runs`` lists them).

    Args:
        active: only those whose outcome is not on file. site: only those of that site.
    """
    from maple_parsl.runs.run import Run
    from maple_parsl.runs.store import Entry, Store

    store = Store()
    found = []
    for summary in store.summaries():
        entry = Entry(store.runs / summary.id)
        wanted = summary.problem is None and (site is None or summary.site == site)
        if wanted and not (active and (entry.folder / "outcome.json").exists()):
            found.append(Run(entry, store))
    return found


def sites() -> tuple[str, ...]:
    """The names of the sites that are not retired."""
    return composing.catalogue_at(None).names()
