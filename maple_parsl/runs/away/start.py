"""From a plan to a run at a site elsewhere."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from maple_parsl.catalogue import Catalogue, SiteRecord
from maple_parsl.errors import RequestError
from maple_parsl.plan import Plan, RunPlace
from maple_parsl.runs import cost, files, prepare, submit
from maple_parsl.runs.away.scheduler import ASK_SECONDS
from maple_parsl.runs.backend import backend
from maple_parsl.runs.place import new_id
from maple_parsl.runs.run import Run
from maple_parsl.runs.start import Terms, sound
from maple_parsl.runs.store import Store
from maple_parsl.transport import Via, connect

BUNDLE = "bundle"


def start(
    plan: Plan,
    record: SiteRecord,
    catalogue: Catalogue,
    terms: Terms,
    via: Via,
    store: Store | None = None,
    submits: bool = True,
) -> Run:
    """Submit a plan at its site; where ``submits`` is false, everything short of that.

    Raises:
        As :func:`maple_parsl.runs.start.start`; TransportError: the site cannot be asked; nothing was submitted.
    """
    store = store or Store()
    sound(plan, terms.force)
    program = _program(plan, catalogue.cwd)
    limit, confirmed = terms.max_node_hours, terms.yes or not submits
    cost.check(plan, record.site.defaults, max_node_hours=limit, yes=confirmed, ask=terms.ask)
    way = connect(via)
    way.ready()
    root = way.call("where", deadline=ASK_SECONDS, root=root_of(record, terms))["root"]
    run_id = terms.run_id or new_id()
    run_dir = f"{root}/{run_id}"
    bound = plan.at(RunPlace(run_id=run_id, run_dir=run_dir, work_dir=f"{run_dir}/work" if program else run_dir))
    building = store.root / f".{run_id}.bundle"
    try:
        files.make_folder(building)
        prepare.fill(bound, building)
        if program:
            _add(building / "work", *program)
        entry = store.add(bound, via=via.to_json(), submits=submits)
        os.rename(building, entry.folder / BUNDLE)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    run = Run(entry, store)
    if submits:
        submit.submit(entry, bound, run.script, backend(store, run.summary).scheduler())
    return run


def root_of(record: SiteRecord, terms: Terms) -> str:
    """Where run directories go at the site; nothing is assumed.

    Raises:
        RequestError: nobody said.
    """
    stated = terms.run_root or record.site.defaults.run_root
    if not stated:
        name = record.site.name
        raise RequestError(
            f"say where runs go at {name}: --run-root DIR, or run_root under [defaults] in your file of the site. It is"
            " a folder there that all its nodes see; ~ and $NAME are read at the site"
        )
    return stated


def _program(plan: Plan, cwd: Path) -> tuple[str, Path] | None:
    """The user's program, if it is a file here that must travel: its name in the job's folder, and its path."""
    stated = plan.request.script
    if stated is None:
        return None
    path = cwd / os.path.expanduser(stated)
    if not path.exists():
        if os.path.isabs(stated):
            return None  # a path at the site
        raise RequestError(
            f"there is no script {stated} in {cwd}; a program that is at the site is named by its path there"
        )
    if os.path.isabs(stated) or not re.fullmatch(r"[\w.+-]+(?:/[\w.+-]+)*", stated) or ".." in stated.split("/"):
        raise RequestError(
            f"{stated} is a file of this machine; name it by a path below the current folder so that it can travel"
        )
    prepare.check_script(plan, cwd)
    return stated, path


def _add(work: Path, name: str, source: Path) -> None:
    target = work / name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
    except OSError as error:
        raise files.explained(source, error, "copied") from None
