"""A chain: jobs that wait for one another, each going on from the checkpoint of the one before."""

from __future__ import annotations

from pathlib import Path

from maple_parsl.catalogue import Catalogue, SiteRecord
from maple_parsl.errors import ComposeError, MapleError, RequestError
from maple_parsl.plan import Link, Plan, RunPlace
from maple_parsl.runs import files, submit
from maple_parsl.runs.after import dependent
from maple_parsl.runs.backend import backend
from maple_parsl.runs.group import Group
from maple_parsl.runs.prepare import prepare
from maple_parsl.runs.run import Run
from maple_parsl.runs.start import Terms, agreed
from maple_parsl.runs.store import Store

MOST = 50
UNTIL_DONE = 8
"""Jobs of a chain whose length was not stated."""


def start(
    plan: Plan, links: int, record: SiteRecord, catalogue: Catalogue, terms: Terms, store: Store | None = None
) -> Group:
    """Submit ``links`` jobs, each waiting for the end of the one before, whatever that end is.

    They keep their checkpoints in one folder (``$MAPLE_RUN_DIR/checkpoints`` of each is a link to it), and from the
    second on find MAPLE_RESUME=1. The first job that succeeds (exit code 0) ends the chain; so does the second in a
    row that fails in the same way. The end of a job by the walltime or by preemption is no failure.

    Raises:
        As :func:`maple_parsl.runs.start.start`; ComposeError where jobs cannot wait for one another.
    """
    store = store or Store()
    if not 2 <= links <= MOST:
        raise RequestError(f"a chain of {links}: state 2 to {MOST} jobs")
    if plan.scheduler == "none" or record.site.scheduler.chain is False:
        why = "has no scheduler" if plan.scheduler == "none" else "lets no job wait for another"
        raise ComposeError([f"{plan.site} {why}, so there are no chains; --requeue may do, where the site allows it"])
    if terms.here:
        raise RequestError("a chain is submitted; it cannot run inside an allocation")
    chosen = agreed(plan, record, catalogue, terms, store, jobs=links)
    folder = Path(chosen.run_dir)
    files.make_folder(folder)
    runs: list[Run] = []
    before = ""
    for number in range(1, links + 1):
        link = Link(number=number, of=links, folder=str(folder), chain=chosen.run_id)
        own = folder / str(number)
        work_dir = str(own / "snapshot") if plan.request.snapshot else chosen.work_dir
        place = RunPlace(run_id=f"{chosen.run_id}-{number}", run_dir=str(own), work_dir=work_dir)
        bound = plan.model_copy(update={"link": link}).at(place)
        bound = dependent(bound, [before] if before else [], "afterany", "goes on where the job before stopped")
        try:
            script = prepare(bound, catalogue.cwd)
            entry = store.add(bound, member={"group": chosen.run_id, "kind": "chain"})
            run = Run(entry, store)
            before = submit.submit(entry, bound, script, backend(store, run.summary).scheduler())
        except MapleError as error:
            if number == 1:
                raise
            said = f"{error}\nJobs 1 to {number - 1} of {links} were submitted: maple status {chosen.run_id}"
            raise type(error)(said) from error
        runs.append(run)
    return Group(chosen.run_id, "chain", runs)
