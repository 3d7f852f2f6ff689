"""From what was stated to a plan; nothing is submitted."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maple_parsl.folders import current, expanded
from maple_parsl.plan import Origin, Plan
from maple_parsl.request import Request
from maple_parsl.walltime import Walltime

if TYPE_CHECKING:
    from maple_parsl.catalogue import Catalogue, SiteRecord
    from maple_parsl.template import Template

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
    made = request if request is not None else request_of(model, paradigm, site, fields)
    return composed(made, catalogue_at(cwd))[0]


def request_of(model: str | None, paradigm: str | None, site: str | None, fields: Mapping[str, Any]) -> Request:
    """The request of three words and the fields."""
    stated = {"model": model, "paradigm": paradigm, "site": site}
    return Request.of(**{**fields, **{key: value for key, value in stated.items() if value is not None}})


def catalogue_at(cwd: str | Path | None) -> Catalogue:
    """The catalogue as it is in a folder, with the project files there."""
    from maple_parsl.catalogue import Catalogue

    return Catalogue.load(os.environ, Path(os.path.abspath(cwd or current())))


def composed(request: Request, catalogue: Catalogue, *, away: bool = False) -> tuple[Plan, SiteRecord]:
    """The plan of a request and the record of its site; the site as this machine is, unless it is ``away``."""
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
    return compose(request, record.site, templates(), record.origin), record


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
    made = compose(filled, site, templates(), record.origin)
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


@cache
def _shipped_templates() -> dict[str, Template]:
    from maple_parsl import template
    from maple_parsl.data import data_folder

    return template.load(data_folder("agents") / "retrieval" / "templates")


def templates() -> dict[str, Template]:
    """The shipped templates, and those in MAPLE_TEMPLATE_PATH over them."""
    from maple_parsl import template

    found = dict(_shipped_templates())
    for folder in filter(None, os.environ.get("MAPLE_TEMPLATE_PATH", "").split(":")):
        found |= template.load(expanded(folder, "MAPLE_TEMPLATE_PATH"))
    return found
