"""Where a run lives: its id, and a run directory that all its nodes see."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from maple_parsl.errors import RequestError
from maple_parsl.folders import expanded
from maple_parsl.plan import Plan, RunPlace
from maple_parsl.script.render import directive_path
from maple_parsl.site import Site

_NODE_LOCAL = ("/tmp", "/var/tmp", "/dev/shm", "/run")


def new_id(now: float | None = None) -> str:
    """A run id such as ``20261201-103000-7f3a9c12d4e5``: sorts by time (UTC), 48 random bits."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    return f"{stamp}-{secrets.token_hex(6)}"


def place(
    plan: Plan,
    site: Site,
    *,
    cwd: Path,
    run_root: str | None = None,
    environ: Mapping[str, str] | None = None,
    run_id: str | None = None,
) -> RunPlace:
    """Choose id and folders; nothing is created.

    The root is, in this order: ``run_root``, MAPLE_RUN_ROOT, the default of the site's file, ``maple-runs`` here.

    Raises:
        RequestError: the folder is not seen by all nodes of the job, or its name cannot stand in a directive.
    """
    environ = os.environ if environ is None else environ
    root = root_of(site, cwd=cwd, run_root=run_root, environ=environ)
    if plan.scheduler != "none":
        if plan.shape.nodes > 1:
            visible(root, site, "run directory", "--run-root (or MAPLE_RUN_ROOT)")
            if not plan.request.snapshot:
                visible(cwd, site, "working directory", "cd to one, or --snapshot")
        directive_path(str(root), percent=plan.scheduler == "slurm")
    chosen = run_id or new_id()
    run_dir = root / chosen
    work_dir = run_dir / "snapshot" if plan.request.snapshot else cwd
    return RunPlace(run_id=chosen, run_dir=str(run_dir), work_dir=str(work_dir))


def root_of(site: Site, *, cwd: Path, run_root: str | None = None, environ: Mapping[str, str] | None = None) -> Path:
    """The folder for run directories; the order is that of :func:`place`.

    Raises:
        RequestError: the folder stated names a variable that is not set.
    """
    environ = os.environ if environ is None else environ
    stated = run_root or environ.get("MAPLE_RUN_ROOT") or site.defaults.run_root
    root = cwd / (_expanded(stated, environ) if stated else "maple-runs")
    return Path(os.path.abspath(root))


def node_local(path: Path, extra: Iterable[str] = ()) -> str | None:
    """The node-local prefix that a path lies under, after following links; None when there is none.

    A link such as ``/scratch -> /tmp`` counts, and so does a site's prefix that is itself a link.
    """
    resolved = Path(os.path.realpath(path))
    for prefix in (*_NODE_LOCAL, *extra):
        for candidate in (Path(prefix), Path(os.path.realpath(prefix))):
            if resolved.is_relative_to(candidate) or path.is_relative_to(candidate):
                return prefix
    return None


def visible(path: Path, site: Site, what: str, remedy: str) -> None:
    """Pass when all nodes see a place, as far as can be told.

    Args:
        what, remedy: for the message.

    Raises:
        RequestError: each node has that place for itself.
    """
    stated = site.storage.node_local if site.storage else ()
    extra = [found for entry in stated if (found := os.path.expandvars(entry)).startswith("/") and found != "/"]
    prefix = node_local(path, extra)
    if prefix is None or (prefix not in extra and _stated_shared(path, site)):
        return
    shared = f" (such as {', '.join(site.storage.shared)})" if site.storage and site.storage.shared else ""
    raise RequestError(
        f"the {what} {path} is under {prefix}, which each node has for itself, so the other nodes of this job"
        f" would not see it; choose a folder that all nodes share{shared}: {remedy}"
    )


def _stated_shared(path: Path, site: Site) -> bool:
    """Whether the site file says that all nodes share this place; it knows better than a folder's usual meaning."""
    stated = site.storage.shared if site.storage else ()
    roots = [found for entry in stated if (found := os.path.expandvars(entry)).startswith("/")]
    return any(Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)) for root in roots)


def _expanded(text: str, environ: Mapping[str, str]) -> Path:
    """``~`` and ``$NAME`` of a stated folder; an unset variable is an error, not an empty name."""
    from string import Template

    try:
        filled = Template(text).substitute(environ) if "$" in text else text
    except (KeyError, ValueError) as error:
        raise RequestError(f"the folder {text!r} names a variable that is not set: {error}") from None
    return expanded(filled, "the folder for run directories")
