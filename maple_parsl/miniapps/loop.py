"""The training loop."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from . import checkpoint
from .checkpoint import Progress
from .errors import EXIT_TERMINATED, RankError
from .fingerprint import job_sha256
from .options import Options
from .paradigms import Trainer, make_trainer
from .report import Metrics, write_rank_file
from .signals import SignalFlags
from .world import World, hosts


@dataclass(frozen=True)
class Interference:
    """What the environment asks for to try how a launch copes."""

    sleep: float = 0.0
    """Seconds added to each step."""
    fail: tuple[int, int, int] | None = None
    """(rank, step, exit code): this rank ends without a word when it reaches this step."""

    @staticmethod
    def from_environment(env: Mapping[str, str]) -> Interference:
        """Reads MAPLE_STEP_SLEEP and MAPLE_FAIL; raises `RankError`."""
        sleep_text, fail_text = env.get("MAPLE_STEP_SLEEP") or "0", env.get("MAPLE_FAIL")
        try:
            sleep = float(sleep_text)
        except ValueError:
            sleep = -1.0
        if not (math.isfinite(sleep) and sleep >= 0):
            raise RankError(f"MAPLE_STEP_SLEEP must be a number of seconds, not {sleep_text!r}")
        if not fail_text:
            return Interference(sleep)
        try:
            rank, step, code = (int(part) for part in fail_text.split(":"))
        except ValueError:
            raise RankError(f"MAPLE_FAIL must be RANK:STEP:CODE, not {fail_text!r}") from None
        return Interference(sleep, (rank, step, code))

    def before(self, rank: int, step: int) -> None:
        """Called by each rank at the start of each step."""
        if self.fail is not None and self.fail[:2] == (rank, step):
            os._exit(self.fail[2])
        if self.sleep:
            time.sleep(self.sleep)


def train(options: Options, world: World, flags: SignalFlags, interference: Interference, resume: bool) -> int:
    """Runs the whole training and returns the exit code of this rank."""
    trainer = make_trainer(options, world)
    progress, resumed_from = checkpoint.resume(trainer) if resume else (Progress(), None)
    metrics = Metrics(world)
    write_rank_file(trainer, "running")
    layout = options.layout
    metrics.event(
        "start",
        model=options.model,
        paradigm=options.paradigm,
        world_size=world.size,
        backend=world.backend,
        device=str(world.device),
        torch=torch.__version__,
        hosts=hosts(world),
        layout={"dp": layout.dp, "pp": layout.pp, "tp": layout.tp},
        batch_size=options.batch_size,
        precision=options.precision,
        seed=options.seed,
        step=progress.step,
        resumed_from=None if resumed_from is None else resumed_from.name,
    )
    try:
        stopped = _steps(trainer, progress, metrics, flags, interference)
        report = trainer.parameters()
        whole = job_sha256(report)
        write_rank_file(trainer, "stopped" if stopped else "done", report, whole)
        metrics.event(
            "terminated" if stopped else "end",
            step=progress.step,
            first_loss=progress.first_loss,
            last_loss=progress.last_loss,
            params_sha256=whole,
        )
    finally:
        metrics.close()
    return EXIT_TERMINATED if stopped else 0


def _steps(
    trainer: Trainer, progress: Progress, metrics: Metrics, flags: SignalFlags, interference: Interference
) -> bool:
    """Trains until the last step (False) or a SIGTERM (True)."""
    options, world = trainer.options, trainer.world
    task = trainer.family.task(options.seed)
    per_step = options.batch_size * options.layout.dp
    while progress.step < options.steps:
        began = time.perf_counter()
        progress.step += 1
        interference.before(world.rank, progress.step)
        first = progress.samples + trainer.replica * options.batch_size
        inputs, targets = task.batch(first, options.batch_size)
        loss = trainer.step(inputs.to(world.device), targets.to(world.device))
        progress.samples += per_step
        mean, save, stop = _agree(loss, flags, world)
        progress.last_loss = mean
        if progress.first_loss is None:
            progress.first_loss = mean
        rate = per_step / (time.perf_counter() - began)
        metrics.event("step", step=progress.step, loss=mean, samples_per_s=round(rate, 3))
        due = options.checkpoint_every and progress.step % options.checkpoint_every == 0
        if save or stop or due:
            reason = "SIGTERM" if stop else "SIGUSR1" if save else "interval"
            folder = checkpoint.save(trainer, progress)
            metrics.event("checkpoint", step=progress.step, path=str(folder), reason=reason)
        if stop:
            return True
    return False


def _agree(loss: Tensor | None, flags: SignalFlags, world: World) -> tuple[float, bool, bool]:
    """(mean loss over the ranks that have one, save asked for, stop asked for), the same on all ranks.

    A signal may reach ranks at different steps or only one of them: one sum over all decides for all.
    """
    save, stop = flags.save, flags.stop
    flags.save = False
    known = loss is not None
    value = loss.to(torch.float32) if loss is not None else torch.zeros((), device=world.device)
    notes = torch.tensor([float(known), float(save), float(stop)], device=world.device)
    total = torch.cat((value.reshape(1), notes))
    dist.all_reduce(total)
    loss_sum, count, saves, stops = total.tolist()
    return loss_sum / count, saves > 0, stops > 0
