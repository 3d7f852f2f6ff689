"""Putting right what is there already: a working script for another site, a faulty plan or script."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from maple_parsl.api import composing
from maple_parsl.plan import Plan
from maple_parsl.request import Request

if TYPE_CHECKING:
    from maple_parsl.correction import Correction, PlanCorrection
    from maple_parsl.diagnosis import Diagnosis
    from maple_parsl.finding import Finding
    from maple_parsl.port import Ported
    from maple_parsl.site import Site


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

    catalogue = composing.catalogue_at(cwd)
    target = catalogue.get(to)
    if source is not None:
        old: Site | None = catalogue.get(source).site
    else:
        old = guess(read(script, name=name), (catalogue.get(n).site for n in catalogue.names())).site
    return carried(script, target.site, composing.templates(), old, name=name, site_origin=target.origin, **fields)


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

    catalogue = composing.catalogue_at(cwd)
    if isinstance(what, str):
        return correct_script(what, found, catalogue.get(site).site if site else None)
    name = what.site
    if name is None:
        raise RequestError("no site stated; maple sites lists them, and local is this machine")
    return correct_plan(what, catalogue.get(name).site, lambda made: composing.composed(made, catalogue)[0], found)
