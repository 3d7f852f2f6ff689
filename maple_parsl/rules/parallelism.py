"""Degrees of parallelism, batch sizes and shapes that must divide."""

from __future__ import annotations

from collections.abc import Iterator

from maple_parsl.rules import parts
from maple_parsl.rules.base import Found, Rule, Subject
from maple_parsl.script.model import Place
from maple_parsl.script.rankmap import LaunchRanks

_TENSOR = ("tensor_model_parallel_size", "tensor_parallel_size", "tensor_parallel", "tp_size", "tp", "tp_degree",
           "tensor_parallel_degree", "model_parallel_size")  # fmt: skip
_PIPE = ("pipeline_model_parallel_size", "pipeline_parallel_size", "pipeline_parallel", "pp_size", "pp", "pp_degree",
         "pipe_parallel_size", "pipeline_parallel_degree")  # fmt: skip
_CONTEXT = ("context_parallel_size", "cp_size", "cp", "context_parallel_degree")
_DATA = ("data_parallel_size", "dp_size", "dp", "dp_degree")
_GLOBAL = ("global_batch_size", "gbs")
_MICRO = ("micro_batch_size", "mbs", "train_micro_batch_size_per_gpu")
_HEADS = ("num_attention_heads", "heads", "num_heads", "n_heads", "n_head", "attention_heads")
_KV = ("num_query_groups", "num_key_value_heads", "num_kv_heads", "n_kv_heads")
_LAYERS = ("num_layers", "n_layers", "layers", "n_layer")
_HIDDEN = ("hidden_size", "hidden", "d_model", "n_embd", "hidden_dim")
_SLURM = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n"


def _number(ranks: LaunchRanks, *names: str) -> tuple[int | None, Place | None]:
    found = parts.setting(ranks.launch.leaf.program, *names)
    if found is None or found[0].number is None or found[0].number < 1:
        return None, found[1] if found else None
    return found[0].number, found[1]


def _degrees(ranks: LaunchRanks) -> tuple[int, str, Place | None] | None:
    """Product of the model's degrees, as words, and where the last one stands; None: one of them is not known."""
    product, words, place = 1, [], None
    for names in (_TENSOR, _PIPE, _CONTEXT):
        size, at = _number(ranks, *names)
        if size is None and at is not None:
            return None
        if size is not None and size > 1:
            product, place = product * size, at
            words.append(f"{names[0].split('_')[0]} {size}")
    return product, " x ".join(words), place


def _world(subject: Subject) -> Iterator[Found]:
    for ranks in subject.launches:
        degrees = _degrees(ranks)
        world = ranks.world_size or ranks.processes
        if degrees is None or world is None or not parts.trains(ranks.launch):
            continue
        product, words, place = degrees
        data, at = _number(ranks, *_DATA)
        if product > 1 and world % product:
            more = product > world
            yield Found(
                f"{words} = {product} processes, and the launch has {world}: "
                + ("too few" if more else f"{world} is not a multiple of it"),
                place,
            )
        elif data is not None and product * data != world and world and (product > 1 or data > world):
            yield Found(f"{words or 'data'} x data {data} = {product * data} and the launch has {world} processes", at)


def _batch(subject: Subject) -> Iterator[Found]:
    for ranks in subject.launches:
        degrees = _degrees(ranks)
        world = ranks.world_size or ranks.processes
        total, place = _number(ranks, *_GLOBAL)
        micro, _ = _number(ranks, *_MICRO)
        if degrees is None or total is None or not world or world % degrees[0]:
            continue
        data = world // degrees[0]
        each = data * (micro or 1)
        if total % each:
            yield Found(
                f"the global batch {total} is not a multiple of {data} data-parallel processes"
                + (f" x micro batch {micro} = {each}" if micro else ""),
                place,
                fix=f"such as {max(each, total // each * each)}",
            )


def _shapes(subject: Subject) -> Iterator[Found]:
    for ranks in subject.launches:
        tensor, at = _number(ranks, *_TENSOR)
        pipe, pipe_at = _number(ranks, *_PIPE)
        heads, heads_at = _number(ranks, *_HEADS)
        layers, _ = _number(ranks, *_LAYERS)
        hidden, hidden_at = _number(ranks, *_HIDDEN)
        groups, groups_at = _number(ranks, *_KV)
        if tensor and heads and heads % tensor:
            yield Found(f"{heads} attention heads do not divide over tensor parallel {tensor}", at)
        if tensor and groups and groups % tensor and tensor % groups:
            yield Found(f"{groups} key-value groups do not divide over tensor parallel {tensor}", groups_at)
        if pipe and layers and layers < pipe:
            yield Found(f"{layers} layers for {pipe} pipeline stages", pipe_at)
        elif pipe and layers and layers % pipe:
            yield Found(f"{layers} layers do not divide over {pipe} pipeline stages", pipe_at, severity="warning")
        if heads and hidden and hidden % heads:
            yield Found(f"hidden size {hidden} does not divide over {heads} heads", hidden_at or heads_at)


RULES = (
    Rule(
        id="degrees-differ-from-world", fault_class="PARALLELISM_DIVISIBILITY", severity="error",
        title="degrees of parallelism that the processes do not fit",
        why="The world size must be a multiple of tensor x pipeline x context parallel, and equal to it times data"
        " parallel where that is given.",
        source="https://github.com/NVIDIA-NeMo/Speech/issues/14838",
        fix="Change the degrees or the number of processes.",
        bad=_SLURM + "srun python train.py --tensor-model-parallel-size 3\n",
        good=_SLURM + "srun python train.py --tensor-model-parallel-size 4\n", check=_world,
    ),
    Rule(
        id="batch-not-divisible", fault_class="PARALLELISM_DIVISIBILITY", severity="error",
        title="a global batch that does not divide",
        why="The global batch is split over data-parallel processes and micro batches.",
        source="https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/core/num_microbatches_calculator.py",
        fix="A multiple of data parallel x micro batch.",
        bad=_SLURM + "srun python train.py --global-batch-size 60 --micro-batch-size 4\n",
        good=_SLURM + "srun python train.py --global-batch-size 64 --micro-batch-size 4\n", check=_batch,
    ),
    Rule(
        id="shape-not-divisible", fault_class="PARALLELISM_DIVISIBILITY", severity="error",
        title="heads, layers or sizes that do not divide",
        why="Tensor parallelism splits the attention heads, pipelines split the layers.",
        source="https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/training/arguments.py",
        fix="A degree that divides them.",
        bad=_SLURM + "srun python train.py --num-attention-heads 6 --tensor-parallel-size 4\n",
        good=_SLURM + "srun python train.py --num-attention-heads 8 --tensor-parallel-size 4\n", check=_shapes,
    ),
)  # fmt: skip
