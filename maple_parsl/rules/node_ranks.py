"""Node ranks and rendezvous names that do not go with the rendezvous."""

from __future__ import annotations

from collections.abc import Iterator

from maple_parsl.rules import parts
from maple_parsl.rules.base import Found, Rule, Subject
from maple_parsl.rules.rendezvous import endpoint_launches
from maple_parsl.script.workers import workers

_HEAD = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node=4\n"
_FIRST = 'export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)\n'
_C10D = (
    "srun torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=$MASTER_ADDR:29400 {}train.py\n"
)
_STATIC = "srun bash -c 'torchrun --nnodes=2 --nproc-per-node=4 {}--master-addr=$MASTER_ADDR train.py'\n"


def _static_rank(subject: Subject) -> Iterator[Found]:
    for ranks, inner in endpoint_launches(subject):
        if inner is ranks.launch or inner.launcher not in ("torchrun", "accelerate") or ranks.launch.command.loop:
            continue
        found = workers(ranks.launch, parts.shape(subject), None)
        if (
            not parts.complete(inner)
            or not found.static
            or (ranks.nodes or 1) < 2
            or (found.nodes or 1) < 2
            or inner.config_found is False
        ):
            continue
        if any(n in inner.environment for n in ("PET_NODE_RANK", "PET_RDZV_BACKEND")):
            continue
        option = inner.option("node_rank")
        rank = found.node_rank
        flag = "--machine_rank" if inner.launcher == "accelerate" else "--node-rank"
        variable = "$SLURM_NODEID" if ranks.launch.launcher == "srun" else "the launcher's node or rank variable"
        if rank is None:
            yield Found(
                f"{inner.launcher} without {flag}: all {ranks.nodes} nodes take themselves for node 0",
                inner.place,
                fix=f"{flag}={variable}, expanded in each task (bash -c '…'); or --rdzv-backend=c10d",
            )
        elif (
            rank.is_const
            and option is None
            and inner.launcher == "accelerate"
            and "{" in (inner.config.get("machine_rank") or "")
        ):
            continue  # a template
        elif rank.is_const:
            yield Found(
                f"{flag} is {rank.text} on all {ranks.nodes} nodes",
                option.place if option else inner.place,
                fix=f"{flag}={variable}, expanded in each task (bash -c '…')",
            )


def _one_config(subject: Subject) -> Iterator[Found]:
    for ranks, inner in endpoint_launches(subject):
        option = inner.option("config_file")
        if inner.launcher != "accelerate" or option is None or inner.config_found is not False:
            continue
        if inner is ranks.launch or (ranks.nodes or 1) < 2 or ranks.launch.command.loop or inner.option("node_rank"):
            continue
        if option.value.has("per_task", "this_host") or (inner.value("rdzv_backend") or option.value).text == "c10d":
            continue
        yield Found(
            f"{option.value} gives machine_rank, and is the same file on all {ranks.nodes} nodes: unless it chooses the"
            " c10d rendezvous, every machine takes itself for the same one",
            option.place,
            fix="--machine_rank $SLURM_NODEID, expanded in each task (bash -c '…')",
        )


def _no_id(subject: Subject) -> Iterator[Found]:
    for ranks, inner in endpoint_launches(subject):
        backend, option = inner.value("rdzv_backend"), inner.option("rdzv_id")
        if inner.launcher != "torchrun" or backend is None or backend.text not in ("c10d", "etcd", "etcd-v2"):
            continue
        if not parts.complete(inner) or (ranks.framework_nodes or 1) < 2 or "PET_RDZV_ID" in inner.environment:
            continue
        if option is None or option.value.is_const:
            yield Found(
                f"the rendezvous is named {option.value}, like that of every other job"
                if option
                else "the rendezvous has no name: agents of another job that reach the same port join it",
                option.place if option else inner.place,
            )


def _unused_rank(subject: Subject) -> Iterator[Found]:
    for _, inner in endpoint_launches(subject):
        option, backend = inner.option("node_rank"), inner.value("rdzv_backend")
        if inner.launcher == "torchrun" and option and backend and backend.text in ("c10d", "etcd", "etcd-v2"):
            yield Found(f"{option.flag} has no effect with the {backend.text} rendezvous", option.place)


def _rdzv_id(subject: Subject) -> Iterator[Found]:
    for ranks, inner in endpoint_launches(subject):
        option = inner.option("rdzv_id")
        if option is None or not parts.stepped(ranks.launch) or ranks.nodes == 1:
            continue
        fresh = option.value.has("random", "free_port", "time") and inner.context == "task"
        fresh = fresh and any(r.context == "task" and r.name == "RANDOM" for r in subject.script.references("RANDOM"))
        if option.value.has("per_task", "this_host") or fresh:
            yield Found(
                f"{option.flag} differs between the nodes ({option.value}), so each joins a rendezvous of its own",
                option.value_place,
                fix="use the job's id: $SLURM_JOB_ID or $PBS_JOBID",
                edits=parts.option_edit(subject, option, f"{option.flag}=$SLURM_JOB_ID")
                if subject.script.scheduler == "slurm"
                else (),
            )


RULES = (
    Rule(
        id="machine-rank-shared", fault_class="RDZV_ENDPOINT", severity="warning",
        title="one accelerate configuration for all machines",
        why="machine_rank differs between machines, so a configuration they share cannot hold it.",
        source="https://huggingface.co/docs/accelerate/basic_tutorials/launch#multi-node-training",
        fix="Give --machine_rank on each node.",
        bad=_HEAD + _FIRST + "srun accelerate launch --config_file all.yaml train.py\n",
        good=_HEAD + _FIRST + "srun bash -c 'accelerate launch --config_file all.yaml --machine_rank $SLURM_NODEID"
        " train.py'\n",
        check=_one_config,
    ),
    Rule(
        id="rendezvous-id-missing", fault_class="RDZV_ENDPOINT", severity="note",
        title="a rendezvous without a name of its own",
        why="Without --rdzv-id, or with a constant one, two jobs on one endpoint join each other.",
        source="https://docs.pytorch.org/docs/stable/elastic/run.html (--rdzv-id)",
        fix="--rdzv-id=$SLURM_JOB_ID (or $PBS_JOBID).",
        bad=_HEAD + _FIRST + _C10D.format(""), good=_HEAD + _FIRST + _C10D.format("--rdzv-id=$SLURM_JOB_ID "),
        check=_no_id,
    ),
    Rule(
        id="static-node-rank", fault_class="RDZV_ENDPOINT", severity="error",
        title="several nodes with the same node rank",
        why="The static rendezvous takes ranks from the node rank. Left out or fixed, all nodes claim the same ranks"
        " and the rendezvous hangs or is refused.",
        source="https://docs.pytorch.org/docs/stable/elastic/run.html (--node-rank, static rendezvous)",
        fix="Give the node's number, expanded on each node, or use c10d.",
        bad=_HEAD + _FIRST + _STATIC.format(""),
        good=_HEAD + _FIRST + _STATIC.format("--node-rank=$SLURM_NODEID "), check=_static_rank,
    ),
    Rule(
        id="node-rank-unused", fault_class="RDZV_ENDPOINT", severity="note",
        title="a node rank that the rendezvous does not heed",
        why="c10d and etcd assign ranks themselves; only the static rendezvous uses --node-rank.",
        source="https://docs.pytorch.org/docs/stable/elastic/run.html (--node-rank)",
        fix="Leave it out.",
        bad=_HEAD + _FIRST + _C10D.format("--node-rank=0 "), good=_HEAD + _FIRST + _C10D.format(""),
        check=_unused_rank,
    ),
    Rule(
        id="rendezvous-id-differs", fault_class="RDZV_ENDPOINT", severity="error",
        title="the rendezvous name differs between nodes",
        why="Agents meet only under the same --rdzv-id.",
        source="https://docs.pytorch.org/docs/stable/elastic/run.html (--rdzv-id)",
        fix="Use the job's id.",
        bad=_HEAD + _FIRST + "srun bash -c 'torchrun --nnodes=2 --rdzv-backend=c10d --rdzv-id=$RANDOM"
        " --rdzv-endpoint=$MASTER_ADDR:29400 train.py'\n",
        good=_HEAD + _FIRST + _C10D.format("--rdzv-id=$SLURM_JOB_ID "), check=_rdzv_id,
    ),
)  # fmt: skip
