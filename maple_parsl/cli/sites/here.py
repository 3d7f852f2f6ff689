"""``maple sites here``: which site is this machine?"""

from __future__ import annotations

from maple_parsl.catalogue import Catalogue
from maple_parsl.cli.output import clean, console, emit_json
from maple_parsl.here import detect_devices, detect_site


def show_here(as_json: bool) -> int:
    """Print the site of this machine and the evidence for it."""
    found, devices = detect_site(Catalogue.load()), detect_devices()
    if as_json:
        emit_json(
            {
                "site": found.site,
                "evidence": found.evidence,
                "candidates": found.candidates,
                "devices": devices,
            }
        )
        return 0 if found.site else 1
    out = console()
    out.print(clean(found.site or "no known site"), style="bold")
    for line in found.evidence:
        out.print(clean(f"  {line}"), overflow="fold")
    if not found.site and not found.candidates:
        out.print("  none of the known sites' variables, scheduler names or domains is found here")
    kinds = {name: devices.names.count(name) for name in devices.names}
    shown = ", ".join(f"{count} × {name}" for name, count in kinds.items()) or "no GPU"
    out.print(clean(f"this machine: {shown}; {len(devices.cores)} hardware threads for this process"))
    return 0 if found.site else 1
