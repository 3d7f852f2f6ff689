"""Programs of a multi-node job that no launcher takes to the other nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.rules import mending, parts
from maple_parsl.rules.base import Found, Rule, Subject
from maple_parsl.script.rankmap import LaunchRanks

_ORCHESTRATORS = re.compile(
    r"parsl|dask|\bray\b|globus|radical|flux|snakemake|nextflow|optuna|balsam|libensemble|submitit|driver|workflow"
    r"|preproc|prepare|download|convert|tokeniz|merge|plot|config|setup|check",
    re.I,
)
_PER_NODE = ("torchrun", "accelerate", "composer", "lightning")


def _alone(subject: Subject) -> Iterator[tuple[LaunchRanks, bool]]:
    """Launches that run on the first node only, and whether nothing else in the script reaches further."""
    wide = [
        r for r in subject.launches
        if parts.stepped(r.launch) and (r.nodes is None or r.nodes > 1 or r.launch.command.loop)
        and not parts.is_tool(r.launch)
    ]  # fmt: skip
    wide += [
        r for r in subject.launches if r.framework == "deepspeed" and (r.nodes or 2) > 1 and r.launch.option("hostfile")
    ]
    wide += [r for r in subject.launches if r.framework == "horovodrun"]
    for ranks in subject.launches:
        if ranks.launch.context == "batch" and not parts.stepped(ranks.launch):
            yield ranks, not wide


def _first_node_only(subject: Subject) -> Iterator[Found]:
    script = subject.script
    if any(launch.launcher == "ray" for launch in script.launches) or script.steps_of("submit"):
        return
    nodes = parts.fewest_nodes(subject)
    for ranks, only in _alone(subject):
        inner = parts.framework_of(ranks.launch)
        told = ranks.framework_nodes
        if inner is not None and inner.launcher in ("deepspeed", "horovodrun"):
            if inner.option("hostfile") or inner.option("hosts") or inner.config:
                continue
            if inner.launcher == "deepspeed" and (told or 1) > 1:
                continue
        start = "srun" if script.scheduler == "slurm" else "mpiexec --ppn 1"
        if inner is not None and inner.launcher in _PER_NODE and (told or 1) > 1:
            if not parts.has_directives(subject) or (ranks.launch.command.background and not only):
                continue
            yield Found(
                f"{inner.launcher} is told {told} nodes and is started on the first one only:"
                " it waits for the others until it times out",
                inner.place,
                fix=f"start it on every node: {start} {inner.launcher} …, one task per node",
                edits=mending.once_per_node(subject, inner.place, inner.launcher),
            )
            continue
        if nodes >= 2 and only and parts.trains(ranks.launch):
            words = " ".join(str(w) for w in ranks.launch.leaf.program[:4])
            managed = inner is None and _ORCHESTRATORS.search(words)
            yield Found(
                f"the job has {nodes} nodes, and {(inner or ranks.launch).launcher or parts.leaf_name(ranks.launch)}"
                " runs on the first one only: a batch script is not repeated on the other nodes",
                (inner or ranks.launch).place,
                fix=f"start it through a launcher, such as {start}",
                severity="warning" if managed else "error",
                edits=parts.replace_text(subject, ranks.launch.place, _head(ranks), "srun " + _head(ranks))
                if script.scheduler == "slurm"
                else (),
            )
            continue
        rank = ranks.node_rank
        if inner is not None and rank is not None and rank.has("batch_zero", "unset") and parts.has_directives(subject):
            option = inner.option("node_rank")
            if option is None or option.value.has("environment") or nodes >= 2:
                continue
            yield Found(
                f"{option.flag} is meant to differ between nodes, but {inner.launcher} runs once,"
                " on the first node, where it is 0",
                option.place,
                fix=f"start {inner.launcher} on every node and expand the variable there:"
                f" srun bash -c '{inner.launcher} … {option.flag} …'",
            )


def _head(ranks: LaunchRanks) -> str:
    words = ranks.launch.command.words
    return " ".join(w.text for w in words[:2])


def _foreground(subject: Subject) -> Iterator[Found]:
    for ranks in subject.launches:
        launch = ranks.launch
        inner = parts.framework_of(launch)
        if not launch.command.loop or launch.command.background or launch.launcher not in ("ssh", "srun", "pbsdsh"):
            continue
        if inner is None or inner.launcher not in _PER_NODE:
            continue
        option = inner.option("nnodes")
        several = (ranks.framework_nodes or 0) > 1 or (option is not None and option.value.number is None)
        if not several or (launch.launcher == "srun" and (ranks.nodes or 1) > 1):
            continue
        if not (launch.option("nodelist") or launch.option("hosts")):
            continue
        if launch.option("f") is not None and launch.launcher == "ssh":
            continue
        yield Found(
            f"{launch.launcher} in a loop runs in the foreground: the first node waits for the others, which are"
            " started only when it has ended",
            launch.place,
            fix="end the command with & and put wait behind the loop; or one srun for all nodes",
        )


_HEAD = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gpus-per-node=4\n"
_ADDR = "export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n1)\n"
_LOOP = (
    _HEAD + _ADDR + "i=0\nfor host in $(scontrol show hostnames $SLURM_JOB_NODELIST); do\n"
    "  ssh $host torchrun --nnodes=2 --node-rank=$i --nproc-per-node=4 --master-addr=$MASTER_ADDR t.py{end}\n"
    "  i=$((i+1))\ndone\nwait\n"
)
RULES = (
    Rule(
        id="first-node-only",
        fault_class="NO_STEP_LAUNCHER",
        severity="error",
        title="a multi-node job whose program runs on the first node only",
        why="The batch script itself runs on the first node. Only a launcher (srun, mpiexec, ssh) starts anything on"
        " the others; without one they stand idle, or the rendezvous waits for them.",
        source="https://slurm.schedmd.com/sbatch.html (the script is run on the first node of the allocation)",
        fix="Start it with srun (Slurm) or mpiexec --ppn 1 (PBS).",
        bad=_HEAD + "#SBATCH --ntasks-per-node=4\npython train.py\n",
        good=_HEAD + "#SBATCH --ntasks-per-node=4\nsrun python train.py\n",
        check=_first_node_only,
    ),
    Rule(
        id="node-loop-in-foreground",
        fault_class="NO_STEP_LAUNCHER",
        severity="error",
        title="nodes are started one after the other",
        why="A distributed program on the first node waits for the second, which the loop starts only after the first"
        " has ended.",
        source="https://www.gnu.org/software/bash/manual/html_node/Lists.html (commands ended by &)",
        fix="Start them in the background and wait, or use one srun.",
        bad=_LOOP.format(end=""),
        good=_LOOP.format(end=" &"),
        check=_foreground,
    ),
)
