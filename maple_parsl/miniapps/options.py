"""The command line, and how the ranks are factored into data, pipeline and tensor parallel groups.

Nothing here imports torch: a wrong command line is reported at once, before the slow import.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass

from .errors import UsageError

MODELS = ("gpt", "bert", "vit", "resnet", "unet")
PARADIGMS = ("ddp", "fsdp", "tp", "pp", "zero", "3d")
MIN_BATCH = 16
"""Samples per replica and step when --batch-size is not given (rounded up to whole micro-batches)."""
MIN_MICROBATCHES = 4
MAX_TENSOR_PARALLEL = 64
"""The models widen with the tensor parallel size (see `ModelSize`), so it is capped."""


@dataclass(frozen=True)
class Layout:
    """How many ways the ranks are split: dp * pp * tp = world size.

    dp counts replicas of the model (each sees other samples), pp pipeline stages, tp shards of one layer.
    """

    dp: int
    pp: int
    tp: int

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return self.dp * self.pp * self.tp


@dataclass(frozen=True)
class Options:
    """One checked command line."""

    model: str
    paradigm: str
    layout: Layout
    steps: int
    batch_size: int
    """Samples per replica and optimizer step; the job as a whole sees batch_size * layout.dp."""
    microbatches: int
    """Pieces into which a pipeline cuts the batch; 1 where there is no pipeline."""
    schedule: str
    lr: float
    seed: int
    precision: str
    checkpoint_every: int
    """Steps between checkpoints; 0 for none but those asked for by signal."""
    zero_stage: int


def parse(argv: Sequence[str], world_size: int) -> Options:
    """Reads and checks the command line for a job of ``world_size`` ranks; raises `UsageError`."""
    args = _parser().parse_args(list(argv))
    for name, least in (("steps", 1), ("checkpoint_every", 0), ("seed", 0)):
        if getattr(args, name) < least:
            raise UsageError(f"--{name.replace('_', '-')} must be {least} or more, not {getattr(args, name)}")
    if not (args.lr > 0 and math.isfinite(args.lr)):
        raise UsageError(f"--lr must be a positive number, not {args.lr}")
    if args.paradigm == "3d" and args.model != "gpt":
        raise UsageError(f"--paradigm 3d is for --model gpt alone, not for {args.model}: use ddp, fsdp, tp or pp")
    layout = choose_layout(args.paradigm, world_size, args.dp, args.pp, args.tp)
    microbatches, batch_size = _cut_batch(args.paradigm, layout, args.microbatches, args.batch_size)
    return Options(
        model=args.model,
        paradigm=args.paradigm,
        layout=layout,
        steps=args.steps,
        batch_size=batch_size,
        microbatches=microbatches,
        schedule=args.schedule,
        lr=args.lr,
        seed=args.seed,
        precision=args.precision,
        checkpoint_every=args.checkpoint_every,
        zero_stage=args.zero_stage,
    )


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are `UsageError`, like all other errors of the command line."""

    def error(self, message: str) -> None:  # type: ignore[override]
        raise UsageError(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="train.py",
        description="Train a small model on synthetic data, to try a launch end to end.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--model", choices=MODELS, required=True)
    add("--paradigm", choices=PARADIGMS, required=True)
    add("--steps", type=int, default=40, help="optimizer steps in all, those before a resume included")
    add("--batch-size", type=int, help=f"samples per replica and step (default: {MIN_BATCH} or just above)")
    add("--lr", type=float, default=0.005, help="learning rate of AdamW")
    add("--seed", type=int, default=0, help="seed of the parameters and of the data")
    add(
        "--precision",
        choices=("fp32", "bf16"),
        default="fp32",
        help="of the arithmetic (parameters: fp32)",
    )
    add(
        "--checkpoint-every",
        type=int,
        default=0,
        metavar="N",
        help="steps between checkpoints (default: 0, none)",
    )
    add("--zero-stage", type=int, choices=(1, 2, 3), default=1, help="zero: what DeepSpeed shards")
    add("--dp", type=int, help="3d: number of replicas, their parameters sharded over each other")
    add("--pp", type=int, help="3d: number of pipeline stages")
    add("--tp", type=int, help="3d: number of tensor parallel shards")
    add("--microbatches", type=int, help="pp, 3d: pieces of a batch (default: 4, or one per stage)")
    add("--schedule", choices=("gpipe", "1f1b"), default="gpipe", help="pp, 3d: order of the micro-batches")
    add("--local_rank", "--local-rank", type=int, help=argparse.SUPPRESS)  # some launchers append it
    return parser


def choose_layout(paradigm: str, world: int, dp: int | None, pp: int | None, tp: int | None) -> Layout:
    """The factors of ``world``: given by the paradigm, or for 3d chosen where the command line does not.

    tp and pp default to the smallest prime factor of what remains, dp to the rest: 8 ranks are 2 x 2 x 2,
    4 ranks are dp 1 x pp 2 x tp 2.
    """
    if paradigm != "3d":
        if (dp, pp, tp) != (None, None, None):
            raise UsageError(f"--dp, --pp and --tp are for --paradigm 3d, not for {paradigm}")
        layout = {"tp": Layout(1, 1, world), "pp": Layout(1, world, 1)}.get(paradigm, Layout(world, 1, 1))
    else:
        for name, value in (("dp", dp), ("pp", pp), ("tp", tp)):
            if value is not None and value < 1:
                raise UsageError(f"--{name} must be at least 1, not {value}")
        given = " x ".join(f"{n} {v}" for n, v in (("dp", dp), ("pp", pp), ("tp", tp)) if v is not None)
        known = (dp or 1) * (pp or 1) * (tp or 1)
        rest, remainder = divmod(world, known)
        if remainder or (None not in (dp, pp, tp) and rest != 1):
            raise UsageError(f"{world} ranks cannot be split into {given}: dp * pp * tp must be {world}")
        if tp is None:
            tp = rest if None not in (dp, pp) else _smallest_factor(rest)
            rest //= tp
        if pp is None:
            pp = rest if dp is not None else _smallest_factor(rest)
            rest //= pp
        layout = Layout(rest if dp is None else dp, pp, tp)
    if layout.tp > MAX_TENSOR_PARALLEL:
        raise UsageError(
            f"tensor parallelism over {layout.tp} ranks is past what these models can be cut into "
            f"({MAX_TENSOR_PARALLEL}); use fewer ranks or another paradigm"
        )
    return layout


def _smallest_factor(number: int) -> int:
    """The smallest prime factor of ``number``, or 1 for 1."""
    return next((n for n in range(2, number + 1) if number % n == 0), 1)


def _cut_batch(paradigm: str, layout: Layout, microbatches: int | None, batch: int | None) -> tuple[int, int]:
    """(number of micro-batches, samples per replica and step)."""
    piped = paradigm in ("pp", "3d")
    if not piped and microbatches is not None:
        raise UsageError(f"--microbatches is for --paradigm pp and 3d, not for {paradigm}")
    pieces = (max(MIN_MICROBATCHES, layout.pp) if microbatches is None else microbatches) if piped else 1
    if pieces < 1:
        raise UsageError(f"--microbatches must be at least 1, not {pieces}")
    if pieces < layout.pp:
        raise UsageError(f"--microbatches {pieces} leaves some of the {layout.pp} pipeline stages without work")
    if batch is None:
        batch = -(-MIN_BATCH // pieces) * pieces
    if batch < 1:
        raise UsageError(f"--batch-size must be at least 1, not {batch}")
    if batch % pieces:
        raise UsageError(f"--batch-size {batch} is not divisible into {pieces} micro-batches")
    return pieces, batch
