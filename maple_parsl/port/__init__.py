"""Carry a working script to another site: program, arguments and the user's own lines kept word for word.

What belongs to a site (directives, launcher, rank variables, rendezvous, binding, proxies, network settings) is
written anew from a request made of the script; what cannot be translated is listed, and nothing is invented.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from maple_parsl.checking.report import inspect
from maple_parsl.compose import compose
from maple_parsl.errors import ComposeError, RequestError
from maple_parsl.port import names
from maple_parsl.port.classify import OURS, classify
from maple_parsl.port.launch_line import exports_of, lost_on_the_line
from maple_parsl.port.program import Program, main_launch, program_of
from maple_parsl.port.request import not_carried, request_of
from maple_parsl.port.result import Part, Ported
from maple_parsl.port.statements import statements
from maple_parsl.port.translate import translate
from maple_parsl.port.write import write
from maple_parsl.script import rank_map, read

if TYPE_CHECKING:
    from maple_parsl.compose.context import SiteOrigin
    from maple_parsl.plan import Plan
    from maple_parsl.request import Request
    from maple_parsl.script.model import Script
    from maple_parsl.site import Site
    from maple_parsl.template import Template

__all__ = ["Part", "Ported", "port"]

_FLAGS = (
    ("walltime", "--walltime"), ("account", "--account"), ("queue", "--queue"), ("number of nodes", "--nodes"),
    ("GPUs per node", "--gpus-per-node"), ("kinds of node", "--node-kind"),
)  # fmt: skip


def port(
    text: str,
    target: Site,
    templates: Mapping[str, Template],
    source: Site | None = None,
    *,
    name: str = "job.sh",
    site_origin: Callable[[str], SiteOrigin | None] = lambda key: None,
    **stated: Any,
) -> Ported:
    """Carry a script to a site.

    Args:
        source: the site it was written for, where known. name: its file name, for messages.
        site_origin: where the target's facts stand. stated: fields of the request for the target, such as account.

    Raises:
        RequestError: a stated value is malformed, or the script is not one for ``source``.
        ComposeError: something the target wants is not stated, or the program depends on what cannot be translated.
    """
    script = read(text, name=name)
    if source is not None and script.scheduler not in ("none", source.scheduler.kind):
        raise RequestError(f"{name} is a script for {script.scheduler}, and {source.name} has {source.scheduler.kind}")
    if target.scheduler.kind == "none":
        raise RequestError(f"{target.name} has no scheduler; maple run {target.name} starts the program there")
    ranks = rank_map(script, source)
    main = main_launch(ranks)
    program = program_of(main.launch)
    rows = statements(script)
    holder = next((s for s in rows if s.holds(main.launch.place.line)), None)
    if holder is not None and holder.compound and OURS not in text:
        raise ComposeError([
            f"line {main.launch.place.line}: the launch stands inside {holder.compound};"
            " make it a command of its own, then port"
        ])  # fmt: skip
    sorted_ = classify(script, rows, main.launch, source, program)
    request = request_of(script, ranks, main, program, target, source, stated)
    plan = _composed(request, target, templates, site_origin, program)
    made = translate(program, sorted_.dropped, script, main, plan.shape)
    kept = [part for part in sorted_.parts if part.fate == "kept"]
    exports = exports_of(script, main.launch, source)
    own = [*(part.text for part in kept), *exports, *made.program.words]
    todo = [
        *(part.todo for part in sorted_.parts if part.todo),
        *made.said,
        *_sizes(main.processes, plan),
        *lost_on_the_line(main.launch, program),
        *(
            f"{d.raw.strip()!r} is not carried; give its counterpart with --directive"
            for d in not_carried(script, source)
        ),
        *_paths(own, target),
        *(f"${n} comes from outside the script; see that {target.title} sets it" for n in names.inherited(own, script)),
    ]
    todo = list(dict.fromkeys(todo))
    origin = f"{name} ({source.title})" if source is not None else name
    new = write(plan, made, kept, exports, todo, origin)
    findings = inspect(new, target, name=name).findings
    return Ported(
        text=new,
        plan=plan,
        program=" ".join(made.program.words),
        parts=(*_directives(script), *sorted_.parts),
        todo=tuple(todo),
        findings=findings,
        source=source.name if source else None,
        target=target.name,
    )


def _composed(
    request: Request,
    target: Site,
    templates: Mapping[str, Template],
    site_origin: Callable[[str], SiteOrigin | None],
    program: Program,
) -> Plan:
    """The plan; one process per device where only the batch shell can expand the program's words."""
    try:
        plan = compose(request, target, templates, site_origin)
        if program.shell and plan.launch.mode == "node" and request.template is None:
            plan = compose(request.model_copy(update={"template": "plain"}), target, templates, site_origin)
        return plan
    except ComposeError as error:
        raise ComposeError([_with_flag(problem) for problem in error.problems]) from None


def _with_flag(problem: str) -> str:
    flag = next((flag for words, flag in _FLAGS if words in problem), None)
    return f"{problem} ({flag})" if flag else problem


def _sizes(before: int | None, plan: Plan) -> list[str]:
    now = plan.shape
    if before is None or before == now.world_size:
        return []
    return [
        f"{before} processes became {now.world_size} ({now.nodes} nodes x {now.devices} devices);"
        " batch sizes and learning rate may depend on it"
    ]


def _paths(texts: list[str], target: Site) -> list[str]:
    found = dict.fromkeys(path for text in texts for path in names.foreign_paths(text, target))
    return [f"the path {path} is kept as it was; see that it is there at {target.title}" for path in found]


def _directives(script: Script) -> list[Part]:
    return [
        Part(line=d.place.line, text=d.raw.strip(), fate="replaced", why="the target's directives")
        for d in script.directives
        if d.state == "effective"
    ]
