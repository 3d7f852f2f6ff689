"""This process's place in the job, read from the environment, and the process group."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import RankError

if TYPE_CHECKING:
    import torch

DEFAULT_BACKENDS = {"cuda": "nccl", "xpu": "xccl", "cpu": "gloo"}
ACCELERATOR_BACKENDS = {"nccl": "cuda", "xccl": "xpu"}
"""Backends that work with the memory of one kind of device alone."""


@dataclass(frozen=True)
class Place:
    """What the launcher told this process."""

    rank: int
    local_rank: int
    world_size: int
    launched: bool
    """Whether a launcher set WORLD_SIZE; if not, this is a job of one process."""

    @staticmethod
    def from_environment(env: Mapping[str, str]) -> Place:
        """Reads RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; raises `RankError`."""
        if "WORLD_SIZE" not in env:
            if env.get("RANK", "0") != "0":
                raise RankError(f"RANK is {env['RANK']} but WORLD_SIZE is not set")
            return Place(0, 0, 1, launched=False)
        names = ("WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
        missing = [name for name in names if not env.get(name)]
        if missing:
            raise RankError(f"WORLD_SIZE is set, so the launcher must also set {', '.join(missing)}")
        world, rank, local = (_whole_number(env, name) for name in names[:3])
        if world < 1 or rank >= world:
            raise RankError(f"RANK {rank} is not below WORLD_SIZE {world}")
        return Place(rank, local, world, launched=True)


def _whole_number(env: Mapping[str, str], name: str) -> int:
    text = env[name]
    if not (text.isascii() and text.isdecimal()):
        raise RankError(f"{name} must be a whole number, not {text!r}")
    return int(text)


@dataclass(frozen=True)
class World:
    """The joined job: place, device, backend and where the output goes."""

    place: Place
    device: torch.device
    backend: str
    run_dir: Path
    host: str

    @property
    def rank(self) -> int:
        """Rank in the whole job."""
        return self.place.rank

    @property
    def size(self) -> int:
        """Number of ranks in the whole job."""
        return self.place.world_size


def join(place: Place, env: Mapping[str, str]) -> World:
    """Takes this rank's device and joins the process group of all ranks (also in a job of one)."""
    import torch
    import torch.distributed as dist

    device = _take_device(place, env)
    if device.type == "cpu" and "OMP_NUM_THREADS" not in env:
        torch.set_num_threads(1)  # many ranks share a host: one thread each, or they fight over the cores
    backend = env.get("MAPLE_BACKEND") or DEFAULT_BACKENDS[device.type]
    _check_backend(backend, device)
    # Bound to its device at once, NCCL need not guess it, nor hang when it guesses wrong.
    bound = device if backend in ACCELERATOR_BACKENDS else None
    if place.launched:
        dist.init_process_group(backend, rank=place.rank, world_size=place.world_size, device_id=bound)
    else:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1, device_id=bound)
    run_dir = Path(env.get("MAPLE_RUN_DIR") or ".").resolve()
    run_dir.mkdir(parents=True, exist_ok=True)
    return World(place, device, backend, run_dir, socket.gethostname())


def _check_backend(backend: str, device: torch.device) -> None:
    """Raises `RankError` for a backend that this torch lacks or that cannot reach the device."""
    import torch
    import torch.distributed as dist

    for part in backend.split(","):  # such as gloo, or cpu:gloo,cuda:nccl
        if not dist.is_backend_available(part.rpartition(":")[2]):
            raise RankError(f"MAPLE_BACKEND is {backend!r}, which torch {torch.__version__} here does not have")
    if backend in ACCELERATOR_BACKENDS and ACCELERATOR_BACKENDS[backend] != device.type:
        raise RankError(f"MAPLE_BACKEND {backend} cannot be used with MAPLE_DEVICE {device.type}")


def leave() -> None:
    """Leaves the process group, if this process joined one."""
    import torch.distributed as dist

    if dist.is_initialized():
        dist.destroy_process_group()


def _take_device(place: Place, env: Mapping[str, str]) -> torch.device:
    """The device of this rank: LOCAL_RANK modulo the devices that this process sees.

    A launcher may show each rank all devices of the host or only the rank's own; both come out right.
    """
    import torch

    kind = env.get("MAPLE_DEVICE") or _present_accelerator()
    if kind not in DEFAULT_BACKENDS:
        raise RankError(f"MAPLE_DEVICE must be cuda, xpu or cpu, not {kind!r}")
    if kind == "cpu":
        return torch.device("cpu")
    module = getattr(torch, kind)
    count = int(module.device_count()) if module.is_available() else 0
    if count == 0:
        raise RankError(f"MAPLE_DEVICE is {kind} but torch {torch.__version__} sees no {kind} device here")
    device = torch.device(kind, place.local_rank % count)
    module.set_device(device)
    return device


def _present_accelerator() -> str:
    """cuda or xpu where torch sees one, else cpu."""
    import torch

    if torch.accelerator.is_available():
        kind = str(torch.accelerator.current_accelerator().type)
        if kind in DEFAULT_BACKENDS:
            return kind
    return "cpu"


def hosts(world: World) -> list[str]:
    """The distinct host names of the job, in order of rank (a collective call)."""
    import torch.distributed as dist

    names: list[str] = [""] * world.size
    dist.all_gather_object(names, world.host)
    return list(dict.fromkeys(names))


def launch_name(env: Mapping[str, str] | None = None) -> str:
    """Who speaks on stderr: the rank, where a launcher gave one."""
    rank = (os.environ if env is None else env).get("RANK")
    return f"train.py: rank {rank}" if rank is not None else "train.py"
