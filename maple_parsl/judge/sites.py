"""The judge's own table of sites."""

from __future__ import annotations

import tomllib
from datetime import date
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from maple_parsl.errors import UnknownNameError


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Kind(_Part):
    """A kind of node: devices (one process each), physical cores, cores next to each device where documented."""

    vendor: Literal["nvidia", "intel", "amd"]
    devices: int
    cores: int
    threads: int
    near: tuple[str, ...] = ()
    flat: bool = False

    @property
    def backends(self) -> tuple[str, ...]:
        return ("xccl", "ccl") if self.vendor == "intel" else ("nccl",)

    @property
    def visible(self) -> str:
        """The variable that chooses and orders devices."""
        names = {"nvidia": "CUDA_VISIBLE_DEVICES", "intel": "ZE_AFFINITY_MASK", "amd": "ROCR_VISIBLE_DEVICES"}
        return names[self.vendor]


class Queue(_Part):
    """Limits of a queue: nodes, minutes (also by number of nodes), devices per node, GPUs in all."""

    kinds: tuple[str, ...]
    min: int = 1
    max: int | None = None
    minutes: int | None = None
    bands: tuple[tuple[int, int], ...] = ()
    devices: int | None = None
    gpus: int | None = None
    account_form: str | None = None

    def longest(self, nodes: int) -> int | None:
        """Longest walltime in minutes of a job on so many nodes."""
        return next((minutes for most, minutes in self.bands if nodes <= most), self.minutes)


class JudgedSite(_Part):
    """What a site demands, forbids and sets, as the judge read it."""

    source: str
    checked_on: date
    scheduler: Literal["slurm", "pbs"]
    queue_option: Literal["qos", "partition"] = "partition"
    node: str
    domain: str
    mpi: dict[str, str] = {}
    required: tuple[str, ...]
    forbidden: tuple[str, ...] = ()
    constraint: str | None = None
    account_form: str | None = None
    min_minutes: int = 1
    software: tuple[str, ...] = ()
    proxy: str | None = None
    env: dict[str, str] = {}
    env_any: tuple[tuple[str, str], ...] = ()
    forbidden_env: tuple[str, ...] = ()
    gres: bool = False
    gpu_bind: str = ""
    whole: bool = False
    megabytes_per_core: int | None = None
    reserved_cores: tuple[int, ...] = ()
    kinds: dict[str, Kind]
    queues: dict[str, Queue] = Field(min_length=1)


@cache
def table() -> dict[str, JudgedSite]:
    """Every site of the table."""
    raw = tomllib.loads(Path(__file__).with_name("sites.toml").read_text(encoding="utf-8"))
    return {name: JudgedSite.model_validate(fields) for name, fields in raw.items()}


def judged_site(name: str) -> JudgedSite:
    """A site by name; raises :class:`UnknownNameError`."""
    if name not in table():
        raise UnknownNameError("site", name, table(), "(the judge has a table of its own)")
    return table()[name]
