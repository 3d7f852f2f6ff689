"""Ways to other sites that the user configured: a Globus Compute endpoint, an open ssh connection."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

from maple_parsl.catalogue import Catalogue
from maple_parsl.doctor.check import Asked, Check
from maple_parsl.errors import MapleError, TransportError


def ways(catalogue: Catalogue, asked: Asked) -> Iterator[Check]:
    """Those of the site that was named, else of every site whose address stands in a file of the user's."""
    for name in [asked.site] if asked.site else catalogue.names():
        try:
            record = catalogue.get(name)
        except MapleError:
            continue  # said of its file already
        remote = record.site.remote
        if remote is None:
            continue
        own = {key for key in ("globus_endpoint", "ssh") if record.origin(f"remote.{key}").layer != "catalogue"}
        if remote.globus_endpoint and ("globus_endpoint" in own or asked.site):
            yield _endpoint(name, remote.globus_endpoint)
        if remote.ssh and "ssh" in own:
            yield ssh(name, remote.ssh)
    if asked.site and not _has_way(catalogue, asked.site):
        remedy = "globus_endpoint or ssh under [remote] in your file of the site, or take the script with --script-only"
        yield Check(f"way to {asked.site}", "note", "no endpoint and no ssh host is configured", remedy)


def _has_way(catalogue: Catalogue, name: str) -> bool:
    site = catalogue.get(name).site
    return site.scheduler.kind == "none" or bool(site.remote and (site.remote.globus_endpoint or site.remote.ssh))


def _endpoint(name: str, address: str) -> Check:
    what = f"endpoint of {name}"
    if importlib.util.find_spec("globus_compute_sdk") is None:
        return Check(
            what, "note", f"{address}, and Globus Compute is not installed", "pip install 'maple-parsl[globus]'"
        )
    return Check(what, "ok", f"{address} is configured, Globus Compute is installed")


def ssh(name: str, host: str) -> Check:
    """Whether the user's own connection is open. Nothing logs in: many sites ask for a second factor each time."""
    from maple_parsl.transport.ssh import Ssh

    what = f"ssh to {name}"
    try:
        Ssh(host).ready()
    except TransportError as error:
        saw, _, remedy = str(error).partition("; " if "; " in str(error) else ": ")
        return Check(what, "note", saw, remedy)
    return Check(what, "ok", f"the connection to {host} is open")
