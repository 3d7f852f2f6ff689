"""From a plan to runs: one, a sweep, a chain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maple_parsl.api import composing
from maple_parsl.plan import Origin, Plan
from maple_parsl.request import Request
from maple_parsl.walltime import Walltime

if TYPE_CHECKING:
    from maple_parsl.catalogue import Catalogue, SiteRecord
    from maple_parsl.runs.group import Group, Params
    from maple_parsl.runs.run import Run
    from maple_parsl.runs.start import Terms
    from maple_parsl.transport import Via


def run(
    model: str | None = None,
    paradigm: str | None = None,
    site: str | Sequence[str] | None = None,
    /,
    *,
    request: Request | None = None,
    dry_run: bool = False,
    yes: bool = False,
    max_node_hours: float | None = None,
    here: bool = False,
    force: bool = False,
    run_root: str | None = None,
    cwd: str | Path | None = None,
    via: str | None = None,
    run_id: str | None = None,
    after: Sequence[str] | str = (),
    after_any: Sequence[str] | str = (),
    restarts: int = 0,
    ask: Callable[[str], bool] | None = None,
    show: Callable[[Plan], None] | None = None,
    **fields: Any,
) -> Run:
    """Launch, once, and return the run. On ``local`` the three words are enough.

    Args:
        site: also ``any`` or several (a list, or ``a,b``): the run goes where it fits and would start first, by what
            their schedulers say now; ``run.plan.provenance["site"]`` has the reason. ``any``: those your files lead to.
        request, fields, cwd: as for :func:`plan`.
        dry_run: check everything and submit nothing; the run then has a plan and no job.
        yes: the cost is confirmed. max_node_hours: refuse a job that could cost more.
        here: launch inside the allocation this process is in; nothing is submitted.
        force: submit in spite of findings of severity error.
        run_root: folder for run directories, on a file system all nodes see.
        via: how the site is reached: ``here``, ``globus``, ``ssh``, or with an address (``globus:UUID``,
            ``ssh:HOST``). By default this machine when it is the site, else what your file of the site names.
        run_id: the id the run gets (letters, digits, dashes), for a program that must find it again after a kill:
            when the store has a run of that id, that is returned and nothing is started.
        after, after_any: ids of runs that must have succeeded, or ended, before this one starts.
        restarts: how often whoever waits for the run (:meth:`Run.result`) may start it again, where it failed for a
            reason that passes or that a correction of the launch repairs. All attempts share ``max_node_hours``
            (without it: what so many jobs of this plan can cost) and one folder of checkpoints.
        ask: puts a question to a person. show: is handed the plan before anything happens.

    Raises:
        Those of :func:`plan`, LimitError, NotHereError, SubmissionError, SchedulerError and StoreError.
    """
    from maple_parsl.errors import RequestError
    from maple_parsl.runs import inputs
    from maple_parsl.runs.start import Terms, rehearse, start

    if run_id is not None and (known := _known(run_id)):
        return known
    catalogue = composing.catalogue_at(cwd)
    one = site if site is None or isinstance(site, str) else ",".join(site)
    made = request if request is not None else composing.request_of(model, paradigm, one, fields)
    made, why = _sited(made, catalogue, via, here)
    if here:
        made = _as_granted(made, catalogue)
    way = _way(made, catalogue, via, here)
    planned, record = composing.composed(made, catalogue, away=way is not None)
    if why is not None:
        planned = planned.model_copy(update={"provenance": {**planned.provenance, "site": why}})
    planned = _waiting(planned, after, after_any)
    if way is None:
        planned = inputs.checked(planned, record.site, catalogue.cwd)
    if show is not None:
        show(planned)
    terms = Terms(yes, ask, max_node_hours, force, here, run_root, run_id, restarts)
    if way is not None:
        if restarts:
            raise RequestError("restarts are for runs submitted on this machine; this one is submitted elsewhere")
        from maple_parsl.runs.away.start import start as start_away

        return start_away(planned, record, catalogue, terms, way, submits=not dry_run)
    launch = rehearse if dry_run else start
    return launch(planned, record, catalogue, terms)


def map(
    params: Iterable[Params],
    model: str | None = None,
    paradigm: str | None = None,
    site: str | None = None,
    /,
    *,
    parallel: int | None = None,
    **options: Any,
) -> Group:
    """Launch one run for each set of parameters, on the scheduler's own job arrays, and return them as a group.

    Args:
        params: mappings (``{"lr": 0.1}`` becomes ``--lr 0.1``) or lists of arguments; they come last.
        parallel: most runs at a time. options: those of :func:`run`, without ``here`` and ``dry_run``.

    Raises:
        As :func:`run`.
    """
    from maple_parsl.runs import sweep

    planned, record, catalogue, terms = _agreed(model, paradigm, site, options)
    return sweep.start(planned, tuple(params), record, catalogue, terms, parallel)


def chain(
    links: int | None,
    model: str | None = None,
    paradigm: str | None = None,
    site: str | None = None,
    /,
    **options: Any,
) -> Group:
    """Launch ``links`` jobs, each going on from the checkpoint of the one before, for training beyond one walltime.

    The first that succeeds ends the chain, and so does the second in a row that fails in the same way.

    Args:
        links: how many; None for a chain as long as is sensible, or one job that is queued again at its walltime,
            whichever the site's file says works there.
        options: those of :func:`run`, without ``here`` and ``dry_run``.

    Raises:
        As :func:`run`; ComposeError where the site has no dependent jobs.
    """
    from maple_parsl.runs import chain as chaining

    planned, record, catalogue, terms = _agreed(model, paradigm, site, options)
    facts = record.site.scheduler
    if links is None and facts.chain is False and facts.requeue and facts.kind == "slurm":
        from maple_parsl.runs.group import Group
        from maple_parsl.runs.start import start

        again, _ = composing.composed(planned.request.model_copy(update={"requeue": True}), catalogue)
        only = start(again, record, catalogue, terms)
        return Group(only.id, "chain", [only])
    return chaining.start(planned, links or chaining.UNTIL_DONE, record, catalogue, terms)


def _agreed(
    model: str | None, paradigm: str | None, site: str | None, options: Mapping[str, Any]
) -> tuple[Plan, SiteRecord, Catalogue, Terms]:
    """The plan of a group, and the terms it starts under."""
    from maple_parsl.runs import inputs
    from maple_parsl.runs.start import Terms

    given = dict(options)
    request, show, cwd = (given.pop(name, None) for name in ("request", "show", "cwd"))
    names = {"yes": False, "ask": None, "max_node_hours": None, "force": False, "run_root": None}
    terms = Terms(**{name: given.pop(name, default) for name, default in names.items()})
    waits = given.pop("after", ()), given.pop("after_any", ())
    catalogue = composing.catalogue_at(cwd)
    made = request if request is not None else composing.request_of(model, paradigm, site, given)
    planned, record = composing.composed(made, catalogue)
    planned = inputs.checked(_waiting(planned, *waits), record.site, catalogue.cwd)
    if show is not None:
        show(planned)
    return planned, record, catalogue, terms


def _waiting(planned: Plan, after: Sequence[str] | str, after_any: Sequence[str] | str) -> Plan:
    if not (after or after_any):
        return planned
    from maple_parsl.runs import after as waiting
    from maple_parsl.runs.store import Store

    first, second = ((names,) if isinstance(names, str) else tuple(names) for names in (after, after_any))
    return waiting.after(planned, Store(), first, second)


def _known(run_id: str) -> Run | None:
    """The run of exactly that id, if the store has it."""
    from maple_parsl.errors import RequestError
    from maple_parsl.runs.run import Run
    from maple_parsl.runs.store import RUN_ID, Store

    if not RUN_ID.match(run_id):
        raise RequestError(f"{run_id!r} cannot be the id of a run; use 6 to 61 small letters, digits and dashes")
    store = Store()
    return Run.open(run_id, store) if run_id in store.ids() else None


def _sited(request: Request, catalogue: Catalogue, via: str | None, here: bool) -> tuple[Request, Origin | None]:
    """The request at one site, and why at that one where several were named."""
    from maple_parsl.errors import RequestError
    from maple_parsl.runs.away import choice

    names = choice.listed(request.site)
    if names is None:
        return request, None
    if via is not None or here:
        raise RequestError("via and here go with one site, not with several")

    def at(name: str) -> Request:
        return request.model_copy(update={"site": name})

    def composed(name: str) -> Plan:
        away = _way(at(name), catalogue, None, False) is not None
        return composing.composed(at(name), catalogue, away=away)[0]

    found = choice.choose(names, catalogue, composed, lambda name: _way(at(name), catalogue, None, False))
    return at(found.site), Origin(layer="computed", why=found.why)


def _way(request: Request, catalogue: Catalogue, via: str | None, here: bool) -> Via | None:
    """The way to a site that is not this machine; None where it is, or where nothing leads elsewhere."""
    from maple_parsl.runs import whereabouts
    from maple_parsl.transport import via as ways

    if request.site is None or here:
        return None
    record = catalogue.get(request.site)
    if via is not None:
        return ways.stated(via, record)
    found = ways.configured(record)
    return None if found is None or whereabouts.surely_here(catalogue, record) else found


def _as_granted(request: Request, catalogue: Catalogue) -> Request:
    """What was not stated and the allocation fixes: nodes, account, the time that is left."""
    from maple_parsl.errors import RequestError
    from maple_parsl.runs.inside import allocation

    if request.site is None:
        raise RequestError("no site stated; maple sites lists them")
    granted = allocation(catalogue.get(request.site).site.scheduler.kind, catalogue.environ)
    walltime = Walltime(granted.seconds) if granted.seconds else None
    given = {"nodes": granted.nodes, "account": granted.account, "walltime": walltime}
    missing = {key: value for key, value in given.items() if getattr(request, key) is None and value is not None}
    return request.model_copy(update=missing)
