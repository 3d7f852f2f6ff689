"""This machine: which site it is, and which devices and cores it has.

Commands are asked with a deadline, and no training framework is imported.
"""

from __future__ import annotations

from maple_parsl.here.command import Runner, ask
from maple_parsl.here.detection import Detection, detect_site
from maple_parsl.here.devices import LocalDevices, detect_devices

__all__ = ["Detection", "LocalDevices", "Runner", "ask", "detect_devices", "detect_site"]
