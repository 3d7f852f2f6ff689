"""The library's functions: plan a launch, run it, find it again."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from maple_parsl.folders import current, expanded
from maple_parsl.plan import Origin, Plan
from maple_parsl.request import Request
from maple_parsl.walltime import Walltime

if TYPE_CHECKING:
    from maple_parsl.agents import Answer, Part
    from maple_parsl.catalogue import Catalogue, SiteRecord
    from maple_parsl.correction import Correction, PlanCorrection
    from maple_parsl.diagnosis import Diagnosis
    from maple_parsl.finding import Finding
    from maple_parsl.inference import Backend
    from maple_parsl.port import Ported
    from maple_parsl.runs.group import Group, Params
    from maple_parsl.runs.run import Run
    from maple_parsl.runs.start import Terms
    from maple_parsl.site import Site
    from maple_parsl.template import Template
    from maple_parsl.transport import Via

_PREFLIGHT_SECONDS = 600  # walltime of a preflight alone: it takes a minute, set-up and clean-up the rest


def plan(
    model: str | None = None,
    paradigm: str | None = None,
    site: str | None = None,
    /,
    *,
    request: Request | None = None,
    cwd: str | Path | None = None,
    **fields: Any,
) -> Plan:
    """Say exactly what a launch would be; nothing is submitted.

    Args:
        model, paradigm, site: the three words. With ``script`` in the fields, model and paradigm are optional.
        request: a whole request instead of fields.
        cwd: where project files are looked for; the current folder by default.
        fields: the fields of :class:`Request`, such as ``nodes=2, walltime="1h", account="abc"``.

    Raises:
        RequestError: a value is malformed. UnknownNameError: no such site, model or paradigm.
        ComposeError: request and site do not go together; every reason is listed.
        ConfigurationError: a site or template file is wrong.
    """
    made = request if request is not None else _request(model, paradigm, site, fields)
    return _composed(made, _catalogue(cwd))[0]


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
        ask: puts a question to a person. show: is handed the plan before anything happens.

    Raises:
        Those of :func:`plan`, LimitError, NotHereError, SubmissionError, SchedulerError and StoreError.
    """
    from maple_parsl.runs.start import Terms, rehearse, start

    if run_id is not None and (known := _known(run_id)):
        return known
    catalogue = _catalogue(cwd)
    one = site if site is None or isinstance(site, str) else ",".join(site)
    made = request if request is not None else _request(model, paradigm, one, fields)
    made, why = _sited(made, catalogue, via, here)
    if here:
        made = _as_granted(made, catalogue)
    way = _way(made, catalogue, via, here)
    planned, record = _composed(made, catalogue, away=way is not None)
    if why is not None:
        planned = planned.model_copy(update={"provenance": {**planned.provenance, "site": why}})
    planned = _waiting(planned, after, after_any)
    if show is not None:
        show(planned)
    terms = Terms(yes, ask, max_node_hours, force, here, run_root, run_id)
    if way is not None:
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

        again, _ = _composed(planned.request.model_copy(update={"requeue": True}), catalogue)
        only = start(again, record, catalogue, terms)
        return Group(only.id, "chain", [only])
    return chaining.start(planned, links or chaining.UNTIL_DONE, record, catalogue, terms)


def _agreed(
    model: str | None, paradigm: str | None, site: str | None, options: Mapping[str, Any]
) -> tuple[Plan, SiteRecord, Catalogue, Terms]:
    """The plan of a group, and the terms it starts under."""
    from maple_parsl.runs.start import Terms

    given = dict(options)
    request, show, cwd = (given.pop(name, None) for name in ("request", "show", "cwd"))
    names = {"yes": False, "ask": None, "max_node_hours": None, "force": False, "run_root": None}
    terms = Terms(**{name: given.pop(name, default) for name, default in names.items()})
    waits = given.pop("after", ()), given.pop("after_any", ())
    catalogue = _catalogue(cwd)
    made = request if request is not None else _request(model, paradigm, site, given)
    planned, record = _composed(made, catalogue)
    planned = _waiting(planned, *waits)
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


def ask(
    words: str,
    *,
    stated: Mapping[str, Any] | None = None,
    model: Backend | None = None,
    without: Collection[Part] = (),
    cwd: str | Path | None = None,
) -> Answer:
    """Say in plain words what to launch; the answer is a verified plan, or the questions that stand in its way.

    Nothing is submitted, and nothing in the words is run. What is not stated is asked for, never guessed::

        answer = maple.ask("train.py with fsdp on 2 Polaris nodes, 1 hour in debug, project datascience")
        answer.plan or print(answer)

    Args:
        words: plain words, JSON or YAML; see ``answer.reading`` for what was understood, and where.
        stated: fields of :class:`Request` stated apart from the words; they win.
        model: a language model for what the grammar leaves open; by default the one of the agents' settings (none).
        without: parts to leave out (``model``, ``retrieval``, ``verification``, ``correction``), for measurements.

    Raises:
        ConfigurationError: a site, template or agent file is wrong.
    """
    from maple_parsl.agents import answer

    catalogue = _catalogue(cwd)
    return answer(
        words,
        catalogue,
        lambda request: _composed(request, catalogue),
        _templates(),
        model=model,
        stated=stated,
        without=without,
    )


def port(
    script: str,
    *,
    to: str,
    source: str | None = None,
    name: str = "job.sh",
    cwd: str | Path | None = None,
    **fields: Any,
) -> Ported:
    """Carry a working script's text to the site ``to``; nothing is submitted.

    Args:
        source: the site it works on; where it is not stated, the one the script gives enough evidence of.
        name: the script's file name. fields: what to state for ``to``, such as ``account="abc", queue="debug"``.

    Raises:
        RequestError: a value is malformed, or the script is not one for ``source``.
        ComposeError: something ``to`` wants is not stated, or the program depends on what cannot be translated.
    """
    from maple_parsl.checking.site_guess import guess
    from maple_parsl.port import port as carried
    from maple_parsl.script import read

    catalogue = _catalogue(cwd)
    target = catalogue.get(to)
    if source is not None:
        old: Site | None = catalogue.get(source).site
    else:
        old = guess(read(script, name=name), (catalogue.get(n).site for n in catalogue.names())).site
    return carried(script, target.site, _templates(), old, name=name, site_origin=target.origin, **fields)


@overload
def correct(
    what: Plan | Request, found: Iterable[Finding] | Diagnosis | None = ..., *, cwd: str | Path | None = ...
) -> PlanCorrection: ...
@overload
def correct(
    what: str,
    found: Iterable[Finding] | Diagnosis | None = ...,
    *,
    site: str | None = ...,
    cwd: str | Path | None = ...,
) -> Correction: ...
def correct(
    what: Plan | Request | str,
    found: Iterable[Finding] | Diagnosis | None = None,
    *,
    site: str | None = None,
    cwd: str | Path | None = None,
) -> PlanCorrection | Correction:
    """Put a plan, a request or a script's text right. Nothing is submitted.

    Args:
        found: findings, or a diagnosis of the failed run; None: what a check finds.
        site: the site of a script, where its text does not say it.

    Returns:
        What changed and why, every statement of the user's that is another now, and what cannot be put right.
    """
    from maple_parsl.correction import correct as correct_script
    from maple_parsl.correction import correct_plan
    from maple_parsl.errors import RequestError

    catalogue = _catalogue(cwd)
    if isinstance(what, str):
        return correct_script(what, found, catalogue.get(site).site if site else None)
    name = what.site
    if name is None:
        raise RequestError("no site stated; maple sites lists them, and local is this machine")
    return correct_plan(what, catalogue.get(name).site, lambda made: _composed(made, catalogue)[0], found)


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
    return _catalogue(None).names()


def _request(model: str | None, paradigm: str | None, site: str | None, fields: Mapping[str, Any]) -> Request:
    stated = {"model": model, "paradigm": paradigm, "site": site}
    return Request.of(**{**fields, **{key: value for key, value in stated.items() if value is not None}})


def _catalogue(cwd: str | Path | None) -> Catalogue:
    from maple_parsl.catalogue import Catalogue

    return Catalogue.load(os.environ, Path(os.path.abspath(cwd or current())))


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
        return _composed(at(name), catalogue, away=away)[0]

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


def _composed(request: Request, catalogue: Catalogue, *, away: bool = False) -> tuple[Plan, SiteRecord]:
    from maple_parsl.compose import compose
    from maple_parsl.errors import RequestError

    if request.site is None:
        raise RequestError("no site stated; maple sites lists them, and local is this machine")
    record = catalogue.get(request.site)
    _whole_lines(request)
    if request.preflight == "only" and request.walltime is None:
        request = request.model_copy(update={"walltime": Walltime(_PREFLIGHT_SECONDS)})
    if request.snapshot:
        request = _inside_tree(request, catalogue.cwd)
    if record.site.scheduler.kind == "none" and not away:
        return _local(request, record), record
    return compose(request, record.site, _templates(), record.origin), record


def _whole_lines(request: Request) -> None:
    """A set-up line that is no whole line of shell would swallow what follows it in the script."""
    from maple_parsl.errors import RequestError

    if request.setup:
        from maple_parsl.here.shell_line import fault

        for text in request.setup:
            if said := fault(text):
                raise RequestError(f"setup line {text!r} is not a whole line of shell: {said}")


def _local(request: Request, record: SiteRecord) -> Plan:
    from maple_parsl import local
    from maple_parsl.compose import compose
    from maple_parsl.here import detect_devices

    site = local.fitted(request, record.site, detect_devices())
    filled = local.with_this_python(request)
    made = compose(filled, site, _templates(), record.origin)
    if filled is request:
        return made
    why = Origin(layer="computed", why="the interpreter Maple runs in, as it has torch")
    return made.model_copy(update={"request": request, "provenance": {**made.provenance, "python": why}})


def _inside_tree(request: Request, cwd: Path) -> Request:
    """With a snapshot, a script named by its absolute path is meant as the copy of it."""
    script = request.script
    if script is None or not os.path.isabs(script) or not Path(script).is_relative_to(cwd):
        return request
    return request.model_copy(update={"script": os.path.relpath(script, cwd)})


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


@cache
def _shipped_templates() -> dict[str, Template]:
    from maple_parsl import template
    from maple_parsl.data import data_folder

    return template.load(data_folder("agents") / "retrieval" / "templates")


def _templates() -> dict[str, Template]:
    """The shipped templates, and those in MAPLE_TEMPLATE_PATH over them."""
    from maple_parsl import template

    found = dict(_shipped_templates())
    for folder in filter(None, os.environ.get("MAPLE_TEMPLATE_PATH", "").split(":")):
        found |= template.load(expanded(folder, "MAPLE_TEMPLATE_PATH"))
    return found
