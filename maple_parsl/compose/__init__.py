"""compose(request, site, templates) -> Plan: fill in what the site fixes, refuse what it does not allow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from maple_parsl.compose import environment, launch, preflight, shape, target
from maple_parsl.compose.context import Context, SiteOrigin, Target
from maple_parsl.compose.directives import directives, lead_seconds
from maple_parsl.errors import ComposeError, UnknownNameError
from maple_parsl.plan import Plan, Rendezvous
from maple_parsl.request import MODELS, PARADIGMS, Request
from maple_parsl.version import VERSION

if TYPE_CHECKING:
    from maple_parsl.site import Site
    from maple_parsl.template import Template

__all__ = ["compose"]


def compose(
    request: Request,
    site: Site,
    templates: Mapping[str, Template],
    site_origin: Callable[[str], SiteOrigin | None] = lambda key: None,
) -> Plan:
    """Make the plan of a request at a site.

    Only what the site fixes is filled in: devices per node, tasks, cores, the launcher, and a queue where
    exactly one takes the job. Nodes default to 1 on a machine without a scheduler and nowhere else; account
    and walltime are never invented.

    Raises:
        ComposeError: with every reason found, each saying what to do.
        UnknownNameError: for a model, paradigm or template that Maple does not have.
    """
    context = _with_default_walltime(Context(request, site, site_origin))
    request = context.request
    scheduler = site.scheduler.kind
    if site.status == "retired" or scheduler == "lsf":
        raise ComposeError([f"{site.title} is retired{f': {site.status_note}' if site.status_note else ''}"])
    paradigm = _paradigm(context)
    _required(context)
    nodes = _nodes(context)
    chosen = target.choose(context, nodes)
    if chosen is None:
        raise ComposeError(context.problems)
    _unfilled(context, chosen)
    template = _template(context, chosen, templates, paradigm)
    devices = shape.devices_per_node(context, chosen)
    if devices is None:
        raise ComposeError(context.problems)
    form = shape.shape(context, chosen, nodes, devices, template.style)
    degrees = shape.degrees(context, paradigm, form.world_size)
    exports = environment.exports(context, chosen, template, form)
    tree = launch.launch(context, chosen, template, paradigm, form, degrees, tuple(export.name for export in exports))
    options = directives(context, chosen, form, template.style)
    steps = environment.setup(context, chosen, form)
    if request.requeue and site.scheduler.kind == "pbs":
        context.finding(
            "requeue-pbs",
            "INVALID_VALUE",
            "note",
            "PBS lets no job requeue itself at the walltime; -r y restarts it after preemption or a node failure",
        )
    if context.problems:
        raise ComposeError(context.problems)
    placed = shape.placement(chosen, form)
    hours = nodes * request.walltime.hours if request.walltime else None
    queue = chosen.queue.name if chosen.queue else request.queue
    return Plan(
        version=VERSION,
        title=_title(request, paradigm, nodes, devices, site),
        request=request,
        site=site.name,
        site_title=site.title,
        scheduler=scheduler,
        kind=chosen.kind_name,
        template=template.name,
        model=request.model,
        paradigm=paradigm,
        backend=chosen.kind.backend,
        torch_device=chosen.kind.torch_device,
        shebang=site.scheduler.shebang,
        job_name=request.name or "maple",
        shape=form,
        walltime=request.walltime,
        account=request.account or site.defaults.account,
        queue=queue,
        node_hours=hours,
        charge=chosen.queue.charge if chosen.queue else None,
        directives=options,
        setup=steps,
        exports=exports,
        rendezvous=_rendezvous(context),
        launch=tree,
        placement=placed,
        requeue=request.requeue,
        lead_seconds=lead_seconds(context),
        warns_itself=not site.scheduler.signal and site.scheduler.kind != "none",
        poll_seconds=site.scheduler.poll_seconds,
        miniapp=request.script is None,
        preflight=preflight.preflight(context, tree, paradigm, form, placed),
        provenance=context.provenance,
        findings=tuple(context.findings),
    )


def _with_default_walltime(context: Context) -> Context:
    """The context with the walltime that the user's own file of the site sets, where the request has none."""
    request, default = context.request, context.site.defaults.walltime
    unsaid = request.walltime is None and not _names(request, "--time", "-t")
    if default is not None and unsaid and context.site.scheduler.kind != "none":
        context.request = request.model_copy(update={"walltime": default})
        context.note("walltime", "configured", "your default walltime for this site")
    return context


def _names(request: Request, *options: str) -> bool:
    """Whether the request states one of these options as a directive of the scheduler."""
    return bool({option.split("=", 1)[0].split(" ", 1)[0] for option in request.directives} & set(options))


def _paradigm(context: Context) -> str:
    request = context.request
    if request.model is None and request.script is None:
        context.problems.append("nothing to run: name a script of yours, or a model for the mini-app")
    if request.script is None and request.model is not None and request.model.lower() not in MODELS:
        raise UnknownNameError("model", request.model, MODELS, "(with a script of yours, any model runs)")
    if request.paradigm is None:
        if request.script is None:
            context.problems.append(f"no paradigm stated; the mini-app has {', '.join(PARADIGMS)}")
        context.note("paradigm", "maple", "a script of one's own starts as ddp does: one process per device")
        return "ddp"
    paradigm = request.paradigm.lower()
    if paradigm not in PARADIGMS:
        raise UnknownNameError("paradigm", request.paradigm, PARADIGMS)
    if request.script is None and paradigm == "3d" and request.model != "gpt":
        context.problems.append(f"the mini-app has 3d for gpt only, not for {request.model}")
    context.note("paradigm", "stated", "stated in the request")
    return paradigm


def _required(context: Context) -> None:
    """What a site's scheduler demands and nobody may invent."""
    request, scheduler = context.request, context.site.scheduler
    if scheduler.kind == "none":
        return
    if request.walltime is None and not _names(request, "--time", "-t"):
        context.problems.append("no walltime stated; state one such as 30m or 02:00:00")
    account = request.account or context.site.defaults.account
    if scheduler.account == "required" and account is None and not _names(request, "--account", "-A"):
        hint = f" ({scheduler.account_hint})" if scheduler.account_hint else ""
        context.problems.append(f"{context.site.name} charges every job to an account; state yours{hint}")
    if request.account:
        context.note("account", "stated", "stated in the request")
    elif account:
        origin = context.site_origin("defaults.account")
        if origin and origin.layer in ("group", "project"):
            context.note("account", "configured", f"of the {origin.layer} file {origin.file}")
            context.finding(
                "shared-account",
                "ACCOUNT_PARTITION",
                "warning",
                f"the job is charged to {account}, which the {origin.layer} file {origin.file} sets",
                fix="state --account, or set your own in your site file",
            )
        else:
            context.note("account", "configured", "your default account for this site")
    if account and scheduler.account_pattern:
        import re

        if not re.fullmatch(scheduler.account_pattern, account):
            context.finding(
                "account-form",
                "ACCOUNT_PARTITION",
                "warning",
                f"account {account!r} does not have the form used here",
                evidence=scheduler.account_hint or scheduler.source,
                fix=scheduler.account_hint or f"it should match {scheduler.account_pattern}",
            )
    if request.walltime:
        if "walltime" not in context.provenance:
            context.note("walltime", "stated", "stated in the request")
        if scheduler.min_walltime and request.walltime < scheduler.min_walltime:
            context.problems.append(
                f"walltime {request.walltime} is below the {scheduler.min_walltime} that"
                f" {context.site.name} accepts at least"
            )


def _unfilled(context: Context, chosen: Target) -> None:
    """A new site file states placeholders until somebody has filled it in."""
    site, kind = context.site, chosen.kind
    parts = {
        "scheduler": site.scheduler,
        "directives": site.directives,
        f"kinds.{chosen.kind_name}": kind,
        f"launchers.{kind.launcher}": site.launchers[kind.launcher],
        f"environments.{kind.environment}": site.environments[kind.environment],
        "rendezvous": site.rendezvous,
    }
    unfilled = [name for name, facts in parts.items() if facts.source.startswith("EDIT")]
    if unfilled:
        context.finding(
            "site-unfilled",
            "SITE_FACTS",
            "warning",
            f"the file of {site.name} is not filled in yet ({', '.join(unfilled)}), so this plan rests on placeholders",
            fix=f"edit it, then maple sites check {site.name}",
        )


def _nodes(context: Context) -> int:
    request = context.request
    if request.nodes is not None:
        context.note("nodes", "stated", "stated in the request")
        if context.site.scheduler.kind == "none" and request.nodes > 1:
            context.problems.append(f"{context.site.name} is one machine; {request.nodes} nodes asked for")
        return request.nodes
    if context.site.scheduler.kind == "none":
        context.note("nodes", "computed", "this machine")
        return 1
    context.problems.append("no number of nodes stated")
    return 1


def _template(context: Context, chosen: Target, templates: Mapping[str, Template], paradigm: str) -> Template:
    """The stated template, or the one for the paradigm and the site's preferred style."""
    request = context.request
    facts = context.site.launchers[chosen.kind.launcher]
    if request.template is not None:
        if request.template not in templates:
            raise UnknownNameError("template", request.template, templates)
        name = request.template
        context.note("template", "stated", "stated in the request")
    elif facts.preferred_style == "per-device":
        name = "plain"
        context.provenance["template"] = context.fact(
            f"launchers.{chosen.kind.launcher}.preferred_style", facts, "every process by the site's launcher"
        )
    else:
        name = "torchrun"
        context.provenance["template"] = context.fact(
            f"launchers.{chosen.kind.launcher}.preferred_style", facts, "one launcher per node"
        )
    if name not in templates:
        raise UnknownNameError("template", name, templates)
    template = templates[name]
    if paradigm not in template.paradigms:
        able = [t.name for t in templates.values() if paradigm in t.paradigms]
        context.problems.append(f"template {name} does not start {paradigm}; these do: {', '.join(able)}")
        raise ComposeError(context.problems)
    if template.backends and chosen.kind.backend not in template.backends:
        context.problems.append(
            f"template {name} works with {', '.join(template.backends)}, not with {chosen.kind.backend}"
        )
    if template.max_nodes and (request.nodes or 1) > template.max_nodes:
        context.problems.append(f"template {name} starts at most {template.max_nodes} nodes: {template.note or ''}")
    return template


def _rendezvous(context: Context) -> Rendezvous:
    facts, scheduler = context.site.rendezvous, context.site.scheduler.kind
    if scheduler == "none":
        expression = "127.0.0.1"
    elif facts.address == "any":
        expression = "$(hostname -i | awk '{print $1}')"
    elif facts.host == "batch-host":
        expression = "$(hostname)"
    elif scheduler == "slurm":
        expression = '$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)'
    else:
        expression = '$(head -n 1 "$PBS_NODEFILE")'
    origin = context.fact("rendezvous", facts, "where rank 0 runs")
    return Rendezvous(expression=expression, suffix=facts.suffix, origin=origin)


def _title(request: Request, paradigm: str, nodes: int, devices: int, site: Site) -> str:
    what = request.model or (request.script or "").rsplit("/", 1)[-1]
    what = f"preflight of {what}" if request.preflight == "only" else what
    return f"{what} {paradigm} on {nodes} node{'s' if nodes > 1 else ''} x {devices} at {site.title}"
