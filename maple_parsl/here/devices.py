"""The devices and cores of this machine, without importing a training framework."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from maple_parsl.here.command import Runner, ask


@dataclass(frozen=True, slots=True)
class LocalDevices:
    """What a process started here may use.

    Attributes:
        kind: ``cuda`` (NVIDIA), ``rocm`` (AMD), ``xpu`` (Intel) or ``cpu``.
        count: how many devices a framework sees; 0 for ``cpu``.
        names: their product names, where they can be read.
        cores: the hardware threads this process may run on.
    """

    kind: Literal["cuda", "rocm", "xpu", "cpu"]
    count: int
    names: tuple[str, ...]
    cores: tuple[int, ...]


def detect_devices(
    environ: Mapping[str, str] | None = None, *, run: Runner = ask, root: Path = Path("/")
) -> LocalDevices:
    """Look for NVIDIA, AMD, then Intel devices; what a visibility variable hides is not counted."""
    environ = os.environ if environ is None else environ
    cores = tuple(sorted(os.sched_getaffinity(0)))
    if names := _visible(_nvidia(run), environ, ("CUDA_VISIBLE_DEVICES",)):
        return LocalDevices("cuda", len(names), names, cores)
    amd = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
    if names := _visible(_amd(root), environ, amd):
        return LocalDevices("rocm", len(names), names, cores)
    if names := _visible(_intel(run, root, environ), environ, ("ZE_AFFINITY_MASK",)):
        return LocalDevices("xpu", len(names), names, cores)
    return LocalDevices("cpu", 0, (), cores)


Found = Sequence[tuple[str, str]]
"""Devices in index order: name and UUID (empty where there is none)."""


def _visible(found: Found, environ: Mapping[str, str], variables: Sequence[str]) -> tuple[str, ...]:
    devices = list(found)
    for variable in variables:
        if variable not in environ:
            continue
        chosen = []
        for entry in environ[variable].split(","):
            device = _pick(devices, entry.strip())
            if device is None or (device in chosen and device[1]):
                break  # the drivers, too, stop at the first entry that is no device
            chosen.append(device)
        devices = chosen
    return tuple(name for name, _ in devices)


def _pick(devices: Found, entry: str) -> tuple[str, str] | None:
    if re.fullmatch(r"\d+(\.\d+)?", entry):
        index = int(entry.partition(".")[0])
        return devices[index] if index < len(devices) else None
    fitting = [device for device in devices if entry and device[1].startswith(entry)]
    return fitting[0] if len(fitting) == 1 else None


def _nvidia(run: Runner) -> Found:
    text = run(["nvidia-smi", "-L"]) or ""
    whole = re.findall(r"^GPU \d+: (.+?) \(UUID: (GPU-[^)]+)\)(\n\s+MIG )?", text, re.M)
    parts = re.findall(r"^\s+(MIG \S+)\s+Device\s+\d+: \(UUID: (MIG-[^)]+)\)", text, re.M)
    free = [(name, uuid) for name, uuid, divided in whole if not divided]
    return free or parts[:1]  # CUDA gives a process one MIG device at most


def _amd(root: Path) -> Found:
    if not (root / "dev/kfd").exists():
        return ()
    found = []
    nodes = root / "sys/class/kfd/kfd/topology/nodes"
    for node in sorted(_listed(nodes), key=lambda path: int(path.name) if path.name.isdecimal() else 0):
        properties = dict(
            line.split(None, 1) for line in _text(node / "properties").splitlines() if " " in line.strip()
        )
        if int(properties.get("simd_count", "0").strip() or 0) > 0:
            unique = properties.get("unique_id", "0").strip()
            uuid = f"GPU-{int(unique):016x}" if unique.isdecimal() and unique != "0" else ""
            found.append((_text(node / "name").strip() or "AMD GPU", uuid))
    return found


def _intel(run: Runner, root: Path, environ: Mapping[str, str]) -> Found:
    flat = environ.get("ZE_FLAT_DEVICE_HIERARCHY", "FLAT").upper() != "COMPOSITE"
    names: list[str] = []
    try:
        listed = json.loads(run(["xpu-smi", "discovery", "-j"]) or "{}").get("device_list", [])
        names = [str(device.get("device_name", "Intel GPU")) for device in listed]
    except (ValueError, AttributeError, TypeError):
        pass  # sysfs decides
    found: list[tuple[str, str]] = []
    cards = [path for path in _listed(root / "sys/class/drm") if re.fullmatch(r"card\d+", path.name)]
    number = 0
    for card in sorted(cards, key=lambda path: int(path.name[4:])):
        vendor, kind = _text(card / "device/vendor").strip(), _text(card / "device/class").strip()
        if vendor != "0x8086" or not kind.startswith("0x0380"):
            continue  # 0x0300 drives a display: an integrated GPU
        tiles = [*(card / "gt").glob("gt[0-9]*"), *(card / "device").glob("tile[0-9]*")]
        name = names[number] if number < len(names) else "Intel GPU"
        found += [(name, "")] * (max(1, len(tiles)) if flat else 1)
        number += 1
    return found or [(name, "") for name in names]


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
