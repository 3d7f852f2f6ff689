"""``--array``, ``--chain``: several runs of one launch, and how they are shown."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maple_parsl.errors import RequestError

if TYPE_CHECKING:
    from maple_parsl.runs.group import Group

_RANGE = re.compile(r"(\d+)-(\d+)\Z")
MOST = 100_000


def combinations(stated: Sequence[str]) -> list[dict[str, Any]]:
    """Every combination of ``NAME=V1,V2`` and ``NAME=0-9``; ``@FILE`` is a JSON list of objects, or one a line.

    Raises:
        RequestError: an entry is malformed, a file cannot be read, or there are too many combinations.
    """
    axes: list[list[dict[str, Any]]] = []
    count = 1
    for text in stated:
        axes.append(_from_file(Path(text[1:])) if text.startswith("@") else list(_axis(text)))
        count *= len(axes[-1])
        if count > MOST:
            raise RequestError(f"--array makes more than {MOST} runs")
    return [{key: value for part in chosen for key, value in part.items()} for chosen in itertools.product(*axes)]


def _axis(text: str) -> Iterator[dict[str, Any]]:
    name, equals, values = text.partition("=")
    if not equals or not name or not values:
        raise RequestError(f"--array {text!r}: write NAME=VALUE,VALUE, NAME=FIRST-LAST or @FILE")
    for value in values.split(","):
        if found := _RANGE.match(value):
            first, last = int(found[1]), int(found[2])
            if not first <= last < first + MOST:
                raise RequestError(f"--array {text!r}: {value} is no range of numbers")
            yield from ({name: number} for number in range(first, last + 1))
        else:
            yield {name: value}


def _from_file(path: Path) -> list[dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise RequestError(f"--array @{path}: the file cannot be read: {error}") from None
    try:
        found = json.loads(text) if text.lstrip().startswith("[") else [json.loads(row) for row in text.splitlines()]
    except ValueError as error:
        raise RequestError(f"--array @{path}: it is not JSON: {error}") from None
    if not found or not all(isinstance(row, dict) for row in found):
        raise RequestError(f"--array @{path}: it must hold objects, such as {{'lr': 0.1}}")
    return list(found)


def summary(group: Group) -> dict[str, Any]:
    """A sweep or chain as JSON values."""
    rows = []
    for run in group.runs:
        status = run.status()
        code = (status.exit or {}).get("code")
        rows.append({"run": run.id, "job_id": status.job_id, "state": status.state.value, "code": code})
    return {"group": group.id, "kind": group.kind, "runs": rows}


def show(group: Group, as_json: bool) -> None:
    """Print where the runs stand: how many in which state, and those that did not go well."""
    found = summary(group)
    if as_json:
        from maple_parsl.cli.output import emit_json

        emit_json(found)
        return
    counts: dict[str, int] = {}
    for row in found["runs"]:
        counts[row["state"]] = counts.get(row["state"], 0) + 1
    said = ", ".join(f"{count} {state}" for state, count in counts.items())
    print(f"{group.kind} {group.id}: {len(group.runs)} runs; {said}")
    few = group.kind == "chain" or len(group.runs) <= 10
    for row in found["runs"]:
        if few or row["state"] not in ("done", "pending", "running"):
            code = "" if row["code"] is None else f", code {row['code']}"
            print(f"  {row['run']}  {row['state']}{code}  job {row['job_id'] or '(none)'}")


def ended(group: Group, as_json: bool) -> int:
    """Wait for all runs and print what came of them; 0 when the sweep or chain did what it was to do, else 10."""
    group.result()
    show(group, as_json)
    return 0 if group.ok else 10
