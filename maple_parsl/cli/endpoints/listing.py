"""``maple endpoints list``: the sites that the user's files lead to."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from maple_parsl.cli.options import Json


@dataclass(frozen=True)
class Way:
    """A site, the way to it, and what the way says of itself."""

    site: str
    via: str
    state: str


def command(json: Json = False) -> int:
    """List the sites that your files lead to, and whether they answer. Exit code 0 also where one does not."""
    return show(json)


def show(json: bool) -> int:
    """Print the list."""
    from maple_parsl.cli.output import emit_json

    found = ways()
    if json:
        emit_json({"endpoints": [asdict(way) for way in found]})
        return 0
    if not found:
        print("none of your site files names an endpoint or ssh host; maple endpoints setup SITE shows how")
    for way in found:
        print(f"{way.site:<20} {way.via:<45} {way.state}")
    return 0


def ways() -> list[Way]:
    """Every site whose own file of the user names a way, asked whether it answers."""
    from maple_parsl.catalogue import Catalogue
    from maple_parsl.errors import MapleError
    from maple_parsl.transport.via import configured

    catalogue = Catalogue.load()
    found = []
    for name in catalogue.names():
        try:
            via = configured(catalogue.get(name))
        except MapleError as error:
            found.append(Way(name, "", str(error)))
            continue
        if via is not None:
            found.append(Way(name, str(via), state_of(str(via.kind), via.address)))
    return found


def state_of(kind: str, address: str) -> str:
    """Whether a way is open: the service's word for an endpoint, the open connection for ssh."""
    from maple_parsl.errors import MapleError

    try:
        if kind == "globus":
            from maple_parsl.transport.globus import Globus

            return "online" if Globus(address).online() else "offline"
        from maple_parsl.transport.ssh import Ssh

        Ssh(address).ready()
    except MapleError as error:
        return str(error)
    return "connected"
