"""The mirror: what a run's job left at the site, kept in the store, so that it is read like a run directory."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from maple_parsl.errors import StoreError
from maple_parsl.runs import files
from maple_parsl.runs.store import Entry, Store, Summary

_NAME = re.compile(r"(?:attempts/\d{1,4}/)?[a-z_]{1,40}(?:\.[a-z]{1,8})?\Z")
_TIMES = ("started", "ended")
_SKEW = 2.0  # seconds by which clocks may differ unnoticed


def folder(entry: Entry) -> Path:
    """Where the mirror of a run is."""
    return entry.folder / "site"


def active(store: Store, like: Summary) -> Iterator[tuple[Entry, Summary]]:
    """The runs of the same site, reached the same way, whose outcome is not on file."""
    for run_id in store.ids():
        entry = Entry(store.runs / run_id)
        with contextlib.suppress(StoreError):
            if not (entry.folder / "outcome.json").exists():
                summary = entry.summary()
                if summary.site == like.site and summary.via == like.via and summary.clusters == like.clusters:
                    yield entry, summary


def asked(entry: Entry, summary: Summary) -> dict[str, Any]:
    """A run as the operation ``status`` takes it, with what the mirror has."""
    path = Path(summary.run_dir)
    return {"root": str(path.parent), "run": path.name, "have": _stamps(entry)}


def take(entry: Entry, said: Mapping[str, Any], skew: float) -> None:
    """Put what the site said of a run into its mirror. Times there are told in this machine's clock.

    Args:
        skew: seconds by which the site's clock is ahead.
    """
    place = folder(entry)
    if not said.get("present"):
        return
    files.make_folder(place)
    owner = said.get("claim")
    if isinstance(owner, str) and re.fullmatch(r"[\w.\[\]+-]{1,200}", owner):
        with contextlib.suppress(FileExistsError):
            os.symlink(owner, place / "claim")
    stamps = _stamps(entry)
    found = said.get("files")
    # the exit record last, as everywhere: what it describes is then at least as new as the rest
    rows = sorted(found.items(), key=lambda row: "exit" in row[0]) if isinstance(found, Mapping) else []
    for name, value in rows:
        if not _NAME.fullmatch(str(name)) or not isinstance(value, list) or len(value) != 2:
            continue
        path = place / name
        files.make_folder(path.parent)
        files.write(path, _told(str(value[1]), skew) if name.endswith(".json") else str(value[1]))
        stamps[name] = str(value[0])
    if rows:
        files.write(place / "stamps.json", stamps)


def _told(text: str, skew: float) -> str:
    if abs(skew) < _SKEW:
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if not isinstance(value, dict):
        return text
    times = {key: value[key] - skew for key in _TIMES if isinstance(value.get(key), int | float)}
    return json.dumps({**value, **times})


def _stamps(entry: Entry) -> dict[str, str]:
    with contextlib.suppress(StoreError):
        return dict(files.read(folder(entry) / "stamps.json") or {})
    return {}
