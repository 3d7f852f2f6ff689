"""What is asked for in each case: shape, limits, program. Drawn by a seed from the judge's own table of sites."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from maple_parsl.judge.sites import JudgedSite, Queue, judged_site

SITES = ("polaris", "aurora", "perlmutter", "vista", "lonestar6", "stampede3", "delta", "deltaai", "anvil")
FAMILIES = ("bert", "gpt", "resnet", "unet", "vit")
WORKLOADS = (*((family, paradigm) for family in FAMILIES for paradigm in ("ddp", "fsdp", "tp", "pp")), ("gpt", "3d"))
PHRASINGS = ("terse", "plain", "verbose")

_MINUTES = (15, 20, 30, 45, 60, 90, 120, 180, 240, 360, 720, 1440, 2880)
_NODES = (1, 2, 2, 2, 3, 4, 4, 6, 8)
_MOST_DEVICES = 48
# Accounts have each site's form; the projects do not exist. TACC needs one only of people with several.
_PROJECTS = {
    "polaris": ("climate_ml", "genomics-ai", "FusionSurrogates"),
    "aurora": ("climate_ml", "LatticeNets", "materials_dl"),
    "perlmutter": ("m4711", "m2093_g", "dessn"),
    "vista": (None, "ASC24017", "CDA23002"),
    "lonestar6": (None, "DMS22005", "ASC24017"),
    "stampede3": (None, "BCS20013"),
    "delta": ("bcrq-delta-gpu", "bbxo-delta-gpu"),
    "deltaai": ("bcrq-dtai-gh", "bfez-dtai-gh"),
    "anvil": ("cis230331", "phy240019"),
}
_SCRIPTS = {
    "bert": ("pretrain_bert.py", "mlm.py", "src/finetune.py"),
    "gpt": ("pretrain_gpt.py", "lm.py", "src/decoder.py"),
    "resnet": ("imagenet.py", "resnet50.py", "src/classify.py"),
    "unet": ("segment.py", "unet_train.py", "src/denoise.py"),
    "vit": ("vit_train.py", "patches.py", "src/vision.py"),
}
_ARGUMENTS: tuple[tuple[str, ...], ...] = (
    (),
    ("--epochs", "3"),
    ("--lr", "3e-4", "--batch-size", "32"),
    ("--config", "configs/base.yaml"),
    ("--max-steps", "5000", "--warmup", "200"),
)


@dataclass(frozen=True)
class Drawn:
    """One workload on one site, as it will be asked for in three phrasings."""

    site: str
    family: str
    paradigm: str
    queue: str
    nodes: int
    devices: int
    part_of_node: bool
    minutes: int
    account: str | None
    script: str | None
    args: tuple[str, ...] = ()
    precision: str | None = None
    conda: str | None = None
    degrees: dict[str, int] = field(default_factory=dict)


def draw(site: str, family: str, paradigm: str, seed: int) -> Drawn:
    """The same for the same seed, whatever else is drawn."""
    rng = random.Random(f"{seed}/{site}/{family}/{paradigm}")
    table = judged_site(site)
    least = 8 if paradigm == "3d" else 1
    for _ in range(1000):
        name = rng.choice(sorted(table.queues))
        queue = table.queues[name]
        kind = table.kinds[queue.kinds[0]]
        devices = queue.devices or kind.devices
        nodes = rng.choice([*_NODES, queue.min])
        part = False
        if nodes == 1 and table.gres and devices > 1 and (queue.devices is not None or rng.random() < 0.4):
            devices, part = rng.choice([count for count in (1, 2, 4) if count <= devices]), True
            part = devices < kind.devices
        if _fits(queue, nodes, devices) and nodes * devices >= least:
            break
    else:
        raise AssertionError(f"nothing can be drawn for {site}")
    degrees = {}
    if paradigm == "3d":
        degrees = {"tp": 2, "pp": 2, "dp": nodes * devices // 4} if nodes * devices % 4 == 0 else {}
    script = rng.choice(_SCRIPTS[family]) if rng.random() < 0.5 and paradigm != "3d" else None
    return Drawn(
        site=site,
        family=family,
        paradigm=paradigm,
        queue=name,
        nodes=nodes,
        devices=devices,
        part_of_node=part,
        minutes=_minutes(rng, table, queue, nodes),
        account=_account(rng, site, name),
        script=script,
        args=rng.choice(_ARGUMENTS) if script else (),
        precision=rng.choice((None, None, "bf16", "fp32")) if not script else None,
        conda=rng.choice(("torch-env", "dl2026")) if rng.random() < 0.12 else None,
        degrees=degrees,
    )


def _fits(queue: Queue, nodes: int, devices: int) -> bool:
    most = queue.max if queue.max is not None else 8
    total = nodes * devices
    return queue.min <= nodes <= most and total <= (queue.gpus or _MOST_DEVICES)


def _minutes(rng: random.Random, site: JudgedSite, queue: Queue, nodes: int) -> int:
    longest = queue.longest(nodes) or 1440
    return rng.choice([minutes for minutes in _MINUTES if site.min_minutes <= minutes <= longest])


def _account(rng: random.Random, site: str, queue: str) -> str | None:
    project = rng.choice(_PROJECTS[site])
    if site == "anvil":
        return f"{project}-{'ai' if queue == 'ai' else 'gpu'}"
    return project
