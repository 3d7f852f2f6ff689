"""Whether a site is this machine, so that its scheduler can be asked from here."""

from __future__ import annotations

import shutil

from maple_parsl.catalogue import Catalogue, SiteRecord
from maple_parsl.errors import NotHereError
from maple_parsl.here import detect_site

_COMMANDS = {"slurm": "sbatch", "pbs": "qsub"}


def surely_here(catalogue: Catalogue, record: SiteRecord) -> bool:
    """Whether this machine is known to be the site; that the scheduler's commands are here proves little."""
    return detect_site(catalogue, catalogue.environ).site == record.site.name


def check(catalogue: Catalogue, record: SiteRecord) -> None:
    """Pass when jobs for this site can be submitted here.

    That is so on a machine without a scheduler for ``local``; where the site is detected, or named in
    MAPLE_SITE; and where the site is of the user's own making and its scheduler's command is there.

    Raises:
        NotHereError: this is another machine, or it cannot be told.
    """
    site = record.site
    command = _COMMANDS.get(site.scheduler.kind)
    if command is None:
        return
    there = shutil.which(command, path=catalogue.environ.get("PATH")) is not None
    own = record.origin("name").layer != "catalogue"
    if own and there:
        return
    found = detect_site(catalogue, catalogue.environ)
    if found.site == site.name and there:
        return
    if found.site == site.name:
        raise NotHereError(
            f"this machine is {site.name} ({'; '.join(found.evidence)}), but it has no {command}; run this on a login"
            " node, or load the module that brings the scheduler's commands"
        )
    if found.site is not None:
        where = f"this machine is {found.site} ({'; '.join(found.evidence)}), not {site.name}"
    elif there:
        where = f"it cannot be told that this machine is {site.name}; if it is, set MAPLE_SITE={site.name}"
    else:
        where = f"this machine is not {site.name}, and no way to reach it is set up"
    raise NotHereError(
        f"{where}. To take the script there by hand: maple plan … --script-only > job.sh, then {command} job.sh on"
        f" a login node of {site.title}"
    )
