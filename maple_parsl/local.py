"""The site ``local``, made true to the machine this runs on: its devices, its cores, its Python."""

from __future__ import annotations

import importlib.util
import sys

from maple_parsl.here import LocalDevices
from maple_parsl.request import Request
from maple_parsl.site import Site


def fitted(request: Request, site: Site, devices: LocalDevices) -> Site:
    """The site with one node kind, the one asked for or found here, and the devices and cores found here.

    A processor has as many "devices" as processes are wanted on it.
    """
    name = request.node_kind or (devices.kind if devices.kind in site.kinds else "cpu")
    kind = site.kinds.get(name)
    if kind is None:
        return site  # compose says what is wrong with the name
    if name == "cpu":
        wanted = request.gpus_per_node or kind.devices
        update = {"devices": wanted, "cores": max(wanted, len(devices.cores))}
    else:
        count = max(1, devices.count) if name == devices.kind else kind.devices
        update = {"devices": count, "gpus": count, "cores": max(count, len(devices.cores))}
    return site.model_copy(update={"kinds": {name: kind.model_copy(update=update)}})


def with_this_python(request: Request) -> Request:
    """The request with the interpreter this runs in, where it names none and this one has torch."""
    if request.environment.stated or importlib.util.find_spec("torch") is None:
        return request
    environment = request.environment.model_copy(update={"python": sys.executable})
    return request.model_copy(update={"environment": environment})
