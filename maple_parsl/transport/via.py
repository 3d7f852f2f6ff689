"""Which way leads to a site. Addresses only: nothing here is secret."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from maple_parsl.errors import RequestError

if TYPE_CHECKING:
    from maple_parsl.catalogue import SiteRecord

Kind = Literal["here", "globus", "ssh"]
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.I)
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]*")


@dataclass(frozen=True)
class Via:
    """A way to a site.

    Attributes:
        kind: ``globus``, ``ssh``, or ``here`` (another Python on this machine).
        address: the endpoint's UUID, or the host as ssh knows it.
        python: the interpreter at the other end of ssh; it needs Parsl to submit.
    """

    kind: Kind
    address: str = ""
    python: str = "python3"

    def __str__(self) -> str:
        return f"{self.kind}:{self.address}" if self.address else self.kind

    def to_json(self) -> dict[str, str]:
        """As JSON values."""
        return {key: str(value) for key, value in asdict(self).items()}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Via:
        """Read it back; raises ValueError or KeyError for what is none."""
        return checked(str(raw["kind"]), str(raw["address"]), str(raw["python"]))


def checked(kind: str, address: str, python: str = "python3") -> Via:
    """A way whose parts are what they should be.

    Raises:
        RequestError: an address that is none.
    """
    if kind == "here":
        return Via("here", "", python)
    if kind == "globus":
        if not _UUID.fullmatch(address):
            raise RequestError(f"{address!r} is not the id of a Globus Compute endpoint (a UUID)")
        return Via("globus", address.lower())
    if kind == "ssh":
        if not _HOST.fullmatch(address):
            raise RequestError(f"{address!r} is not a host that ssh can be told")
        return Via("ssh", address, python)
    raise RequestError(f"via={kind!r}: it is here, globus or ssh, or one of the last two with an address (ssh:HOST)")


def stated(text: str, record: SiteRecord) -> Via | None:
    """What ``via=`` names; None for ``here``.

    Raises:
        RequestError: it names no way, or the site's files have no address for it.
    """
    kind, _, address = text.partition(":")
    if kind == "here":
        return None
    remote = record.site.remote
    known = {"globus": remote.globus_endpoint, "ssh": remote.ssh} if remote else {}
    if kind in ("globus", "ssh") and not address and not known.get(kind):
        key = {"globus": "globus_endpoint", "ssh": "ssh"}[kind]
        raise RequestError(
            f"no address for via={kind} at {record.site.name}; write via={kind}:ADDRESS, or {key} = ... under [remote]"
            f" in your file of the site"
        )
    return checked(kind, address or known.get(kind) or "", _python(record))


def configured(record: SiteRecord) -> Via | None:
    """The way that the user's, group's or project's own file of a site names, the endpoint first.

    The shipped catalogue's addresses are facts about a facility and start nothing by themselves.
    """
    remote = record.site.remote
    if remote is None:
        return None
    for kind, key, address in (("globus", "globus_endpoint", remote.globus_endpoint), ("ssh", "ssh", remote.ssh)):
        if address and record.origin(f"remote.{key}").layer != "catalogue":
            return checked(kind, address, _python(record))
    return None


def _python(record: SiteRecord) -> str:
    remote = record.site.remote
    return (remote.python if remote else None) or "python3"
