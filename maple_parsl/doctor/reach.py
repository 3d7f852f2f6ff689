"""Ways to other sites that the user configured: a Globus Compute endpoint, an open ssh connection."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Iterator, Mapping

from maple_parsl.catalogue import Catalogue
from maple_parsl.doctor.check import Asked, Check
from maple_parsl.errors import MapleError

_DEADLINE = 10.0


def ways(catalogue: Catalogue, environ: Mapping[str, str], asked: Asked) -> Iterator[Check]:
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
            yield ssh(name, remote.ssh, environ)
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


def ssh(name: str, host: str, environ: Mapping[str, str]) -> Check:
    """Whether the user's own connection is open. Nothing logs in: many sites ask for a second factor each time."""
    what = f"ssh to {name}"
    path = shutil.which("ssh", path=environ.get("PATH"))
    if path is None:
        return Check(what, "fault", "ssh is not on PATH", "install OpenSSH's client")
    config = ["-F", environ["MAPLE_SSH_CONFIG"]] if environ.get("MAPLE_SSH_CONFIG") else []
    words = [path, *config, "-o", "BatchMode=yes", "-o", "ControlMaster=no", "-O", "check", "--", host]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_DEADLINE, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return Check(what, "note", f"the connection to {host} does not answer", "log in once more, and leave it open")
    if done.returncode == 0:
        return Check(what, "ok", f"the connection to {host} is open")
    remedy = (
        f"log in once (ssh {host}) and leave it open; ~/.ssh/config needs ControlMaster, ControlPath, ControlPersist"
    )
    return Check(what, "note", f"no connection to {host} is open", remedy)
