"""Where operations on a site happen: on this machine, through a Globus Compute endpoint, or over ssh.

A transport has one method, :meth:`~maple_parsl.transport.base.Transport.call`. What is called is
:mod:`maple_parsl.remote`; a :class:`~maple_parsl.transport.via.Via` says which transport leads to a site.
"""

from __future__ import annotations

import threading

from maple_parsl.transport.base import Transport
from maple_parsl.transport.via import Via

__all__ = ["Transport", "Via", "connect"]

_open: dict[Via, Transport] = {}
_lock = threading.Lock()


def connect(via: Via) -> Transport:
    """The transport to a site, one for all its users in this process."""
    with _lock:
        if via not in _open:
            _open[via] = _made(via)
        return _open[via]


def _made(via: Via) -> Transport:
    if via.kind == "globus":
        from maple_parsl.transport.globus import Globus

        return Globus(via.address)
    if via.kind == "ssh":
        from maple_parsl.transport.ssh import Ssh

        return Ssh(via.address, via.python)
    from maple_parsl.transport.base import Here

    return Here(via.python)
