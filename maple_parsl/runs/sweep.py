"""A sweep: one plan with many sets of arguments, as job arrays of the scheduler, split at the site's limit."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from maple_parsl.catalogue import Catalogue, SiteRecord
from maple_parsl.errors import ComposeError, MapleError, RequestError
from maple_parsl.plan import Array, Plan, RunPlace
from maple_parsl.runs import submit
from maple_parsl.runs.after import dependent
from maple_parsl.runs.backend import backend
from maple_parsl.runs.group import Group, Params, arguments
from maple_parsl.runs.prepare import prepare
from maple_parsl.runs.run import Run
from maple_parsl.runs.start import Terms, agreed
from maple_parsl.runs.store import Entry, Store

LARGEST = 1000
"""Elements of one array where the site's limit is unknown: Slurm's own default."""


def parts(count: int, most: int) -> list[int]:
    """Sizes of the fewest arrays that hold so many elements, as even as they can be."""
    number = -(-count // most)
    return [count // number + (index < count % number) for index in range(number)]


def start(
    plan: Plan,
    params: Sequence[Params],
    record: SiteRecord,
    catalogue: Catalogue,
    terms: Terms,
    parallel: int | None = None,
    store: Store | None = None,
) -> Group:
    """Submit one run per set of parameters.

    Every run is on record before the first array is sent. With ``parallel``, an array waits for the end of the one
    before, so that no more run at a time than stated.

    Raises:
        As :func:`maple_parsl.runs.start.start`; RequestError for no parameters, or malformed ones.
    """
    store = store or Store()
    words = tuple(arguments(each) for each in params)
    if not words:
        raise RequestError("a sweep needs at least one set of parameters")
    if parallel is not None and parallel < 1:
        raise RequestError(f"parallel is {parallel}; at least one run at a time")
    if plan.scheduler == "none":
        raise ComposeError([f"{plan.site} has no scheduler, and so no job arrays; start its runs one by one"])
    if terms.here:
        raise RequestError("a sweep is submitted; it cannot run inside an allocation")
    chosen = agreed(plan, record, catalogue, terms, store, jobs=len(words))
    sizes = parts(len(words), record.site.scheduler.max_array or LARGEST)
    made: list[tuple[Plan, Path, list[Entry]]] = []
    at = 0
    for number, size in enumerate(sizes, 1):
        array = Array(params=words[at : at + size], parallel=parallel)
        bound = plan.model_copy(update={"array": array}).at(_place(chosen, number, len(sizes)))
        made.append((bound, *_prepared(bound, catalogue.cwd, store, chosen.run_id)))
        at += size
    before = ""
    for number, (bound, script, entries) in enumerate(made, 1):
        if before and parallel is not None:
            bound = dependent(bound, [before], "afterany", f"at most {parallel} at a time, over all arrays")
            script.write_text(bound.script, encoding="utf-8")
        try:
            scheduler = backend(store, entries[0].summary()).scheduler()
            before = submit.submit(entries, bound, script, scheduler)
        except MapleError as error:
            if number == 1:
                raise
            said = f"{error}\nArrays 1 to {number - 1} of {len(made)} were submitted: maple status {chosen.run_id}"
            raise type(error)(said) from error
    return Group(chosen.run_id, "sweep", [Run(entry, store) for _, _, entries in made for entry in entries])


def _place(chosen: RunPlace, number: int, of: int) -> RunPlace:
    if of == 1:
        return chosen
    run_id = f"{chosen.run_id}-p{number}"
    run_dir = str(Path(chosen.run_dir).with_name(run_id))
    work_dir = chosen.work_dir
    if work_dir.startswith(f"{chosen.run_dir}/"):  # the snapshot
        work_dir = run_dir + work_dir.removeprefix(chosen.run_dir)
    return RunPlace(run_id=run_id, run_dir=run_dir, work_dir=work_dir)


def _prepared(bound: Plan, cwd: Path, store: Store, group: str) -> tuple[Path, list[Entry]]:
    """The script of an array, a folder for each element, and its entry in the store."""
    assert bound.place
    assert bound.array
    script = prepare(bound, cwd)
    entries = []
    for index in range(len(bound.array.params)):
        folder = script.parent / str(index)
        folder.mkdir(mode=0o700)
        with contextlib.suppress(OSError):
            os.symlink("../script.sh", folder / "script.sh")
        own = RunPlace(run_id=f"{bound.place.run_id}-{index}", run_dir=str(folder), work_dir=bound.place.work_dir)
        words = " ".join(bound.array.params[index])
        element = bound.model_copy(update={"place": own, "title": f"{bound.title}: {words}" if words else bound.title})
        single = bound.array.range is None
        member = {"group": group, "kind": "sweep", "element": None if single else index}
        entries.append(store.add(element, member=member))
    return script, entries
