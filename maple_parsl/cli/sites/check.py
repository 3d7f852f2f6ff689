"""``maple sites check``: can every site file be used, and are its facts recent?"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

from maple_parsl.catalogue import Catalogue, SiteRecord
from maple_parsl.cli.output import clean, console, emit_json
from maple_parsl.errors import ConfigurationError

PLACEHOLDER, UNFILLED = "EDIT", "is not filled in yet"
TOO_OLD, BROKEN = 1, 3
_NAMED = ("kinds", "launchers", "environments")


def check_sites(names: Sequence[str], max_age_days: int, as_json: bool) -> int:
    """Print what is wrong; the exit code says how bad it is."""
    catalogue = Catalogue.load()
    results = [_check(catalogue, n, max_age_days) for n in names or (*catalogue.names(), *catalogue.retired())]
    # A place that was named and cannot be read is a fault of no single site.
    places = list(catalogue.notices) if not names else []
    broken = bool(places) or any(result["faults"] for result in results)
    old = any(result["old"] for result in results)
    if as_json:
        emit_json({"sites": results, "places": places, "max_age_days": max_age_days})
    else:
        _print(results, places)
    return BROKEN if broken else TOO_OLD if old else 0


def _check(catalogue: Catalogue, name: str, max_age_days: int) -> dict[str, Any]:
    path = "/" in name or name.lower().endswith(".toml")
    faults = [] if path else [str(fault) for fault in catalogue.faults(name)]
    result: dict[str, Any] = {"name": name, "faults": faults, "old": []}
    if not faults:
        try:
            record = catalogue.get(name)
        except ConfigurationError as error:
            result["faults"] = [str(error)]
            return result
        result["name"], result["checked_on"] = record.site.name, record.oldest.isoformat()
        if record.site.status != "retired":
            result["old"] = _old(record, max_age_days)
    return result


def _old(record: SiteRecord, max_age_days: int) -> list[dict[str, Any]]:
    groups: dict[str, tuple[date, str]] = {}
    for key, origin in record.origins.items():
        parts = key.split(".")
        group = ".".join(parts[: 2 if parts[0] in _NAMED else 1])
        if len(parts) > 1:
            groups[group] = min(groups.get(group, (date.max, "")), (origin.checked_on, origin.source))
    found = []
    if record.site.title.startswith(PLACEHOLDER):
        origin = record.origins["title"]
        checked_on, source = origin.checked_on.isoformat(), record.site.title
        found.append({"group": "title", "checked_on": checked_on, "source": source, "reason": UNFILLED})
    for group, (checked, source) in groups.items():
        age = (date.today() - checked).days
        if source.startswith(PLACEHOLDER):
            reason = UNFILLED
        elif age > max_age_days:
            reason = f"was checked {age} days ago, on {checked}"
        elif age < -1:  # a day ahead may be a time zone
            reason = f"is said to be checked on {checked}, which is yet to come"
        else:
            continue
        found.append({"group": group, "checked_on": checked.isoformat(), "source": source, "reason": reason})
    return found


def _print(results: Sequence[dict[str, Any]], places: Sequence[str]) -> None:
    out = console()
    for result in results:
        if result["faults"]:
            out.print(f"{clean(result['name'])}: cannot be used", style="bold red")
        elif result["old"]:
            unfilled = any(old["reason"] == UNFILLED for old in result["old"])
            what = "to be filled in" if unfilled else "to be checked again"
            out.print(f"{clean(result['name'])}: {what}", style="bold yellow")
        else:
            out.print(clean(f"{result['name']}: ok, oldest facts of {result['checked_on']}"))
        for fault in result["faults"]:
            out.print(clean(f"  {fault}"), overflow="fold")
        for old in result["old"]:
            out.print(clean(f"  {old['group']} {old['reason']} ({old['source']})"), overflow="fold")
    for place in places:
        out.print(clean(place), style="bold red", overflow="fold")
    if not results:
        out.print("no site is known")
