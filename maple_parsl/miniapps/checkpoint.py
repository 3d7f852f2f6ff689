"""Checkpoints on disk: complete or not there.

A checkpoint is written to ``checkpoints/.step-NNNNNNNN.partial`` and renamed to ``checkpoints/step-NNNNNNNN``
when all ranks have written their parts.  So a folder without a leading dot is complete.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch.distributed as dist

from .errors import UsageError
from .options import Options
from .paradigms import Trainer
from .world import World

MANIFEST = "manifest.json"


@dataclass
class Progress:
    """How far the training has come."""

    step: int = 0
    """Optimizer steps done."""
    samples: int = 0
    """Samples seen by the whole job: the position in the data."""
    first_loss: float | None = None
    last_loss: float | None = None


def identity(options: Options, world: World) -> dict[str, object]:
    """What must be the same in the run that wrote a checkpoint and the one that reads it."""
    same: dict[str, object] = {"model": options.model, "paradigm": options.paradigm, "world_size": world.size}
    same.update(asdict(options.layout), seed=options.seed, precision=options.precision)
    if options.paradigm == "zero":
        same["zero_stage"] = options.zero_stage
    return same


def save(trainer: Trainer, progress: Progress) -> Path:
    """Writes a checkpoint and returns its folder (a collective call)."""
    world = trainer.world
    parent = world.run_dir / "checkpoints"
    partial = parent / f".step-{progress.step:08d}.partial"
    final = parent / f"step-{progress.step:08d}"
    if world.rank == 0:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
    dist.barrier()
    trainer.save(partial)
    dist.barrier()
    if world.rank == 0:
        manifest = {**asdict(progress), **identity(trainer.options, world), "saved_at": time.time()}
        (partial / MANIFEST).write_text(json.dumps(manifest) + "\n", encoding="utf-8")
        if final.exists():  # of an earlier run in the same folder
            shutil.rmtree(final)
        os.replace(partial, final)
    dist.barrier()
    return final


def newest(run_dir: Path) -> tuple[Path, dict[str, object]] | None:
    """The folder and manifest of the complete checkpoint that was written last, if there is one."""
    found: list[tuple[float, int, Path, dict[str, object]]] = []
    for file in (run_dir / "checkpoints").glob(f"step-*/{MANIFEST}"):
        manifest = json.loads(file.read_text(encoding="utf-8"))
        found.append((float(manifest["saved_at"]), int(manifest["step"]), file.parent, manifest))
    if not found:
        return None
    _, _, folder, manifest = max(found, key=lambda entry: entry[:2])
    return folder, manifest


def resume(trainer: Trainer) -> tuple[Progress, Path | None]:
    """Loads the newest complete checkpoint, if there is one (a collective call).

    Rank 0 chooses it for all.  Raises `UsageError` if it is of another kind of run.
    """
    choice = [newest(trainer.world.run_dir) if trainer.world.rank == 0 else None]
    dist.broadcast_object_list(choice, src=0)
    if choice[0] is None:
        return Progress(), None
    folder, manifest = choice[0]
    for name, value in identity(trainer.options, trainer.world).items():
        if manifest.get(name) != value:
            raise UsageError(f"cannot resume from {folder}: its {name} is {manifest.get(name)}, not {value} as here")
    trainer.load(folder)
    return Progress(**{name: manifest[name] for name in asdict(Progress())}), folder  # type: ignore[arg-type]
