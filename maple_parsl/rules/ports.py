"""Ports that another job or launch may hold."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.finding import Edit
from maple_parsl.rules import parts
from maple_parsl.rules.base import Found, Rule, Subject
from maple_parsl.script.model import Place
from maple_parsl.script.rankmap import LaunchRanks
from maple_parsl.script.values import Value

_NAMES = ("MASTER_PORT", "RDZV_PORT", "PET_MASTER_PORT")
_EPHEMERAL = 32768
_ARITHMETIC = re.compile(r"MASTER_PORT=\$\(\([^()]*(?:\([^()]*\)[^()]*)*\)\)")
_FIX = "MASTER_PORT=$((10000 + ${SLURM_JOB_ID%%_*} % 20000))"
_HEAD = "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=4\n#SBATCH --gpus-per-node=4\n"


def _ports(subject: Subject) -> Iterator[tuple[Value, Place, str, LaunchRanks | None]]:
    seen: set[int] = set()
    told: set[str] = set()
    for assignment in subject.script.assignments:
        if assignment.name in _NAMES and assignment.how != "unset" and assignment.place.line not in seen:
            seen.add(assignment.place.line)
            told.add(str(assignment.value))
            yield assignment.value, assignment.place, assignment.name, None
    for ranks in subject.launches:
        inner = parts.framework_of(ranks.launch)
        if inner is None or inner.option("standalone"):
            continue
        for name in ("master_port", "rdzv_endpoint"):
            option = inner.option(name)
            if option is None or option.place.line in seen:
                continue
            value = option.value.split(":")[-1] if name == "rdzv_endpoint" else option.value
            if (name == "rdzv_endpoint" and ":" not in str(option.value)) or str(value) in told:
                continue
            seen.add(option.place.line)
            told.add(str(value))
            yield value, option.place, option.flag, ranks


def _exclusive(subject: Subject) -> bool:
    script = subject.script
    return script.directive("--exclusive") is not None or script.scheduler in ("cobalt",)


def _fixed(subject: Subject) -> Iterator[Found]:
    if not (parts.has_directives(subject) or subject.script.scheduler != "none"):
        return
    for value, place, name, _ in _ports(subject):
        port = value.number
        if port is None or not 1024 <= port <= 65535:
            continue
        alone = _exclusive(subject)
        edits: tuple[Edit, ...] = ()
        if name == "MASTER_PORT" and subject.script.scheduler == "slurm" and not place.file:
            edits = parts.replace_text(subject, place, f"MASTER_PORT={port}", _FIX)
        yield Found(
            f"{name} is always {port}: " + ("left-over processes and a second launch in the job would collide on it"
            if alone else "two jobs that share a node collide on it"),
            place,
            severity="note" if alone else None,
            edits=edits,
        )  # fmt: skip


def _ephemeral(subject: Subject) -> Iterator[Found]:
    for value, place, name, _ in _ports(subject):
        symbol = value.symbol
        if value.number is None and symbol is not None and symbol.kind in ("job_id", "random", "number", "choice"):
            low, high = value.low, value.high
            if low is not None and high is not None and low >= _EPHEMERAL and high <= 65535:
                yield Found(
                    f"{name} lies between {low} and {high}, where the system also takes ports for outgoing connections",
                    place,
                    fix="choose below 32768, such as 10000 + job id % 20000",
                )


def _range(subject: Subject) -> Iterator[Found]:
    for value, place, name, _ in _ports(subject):
        low, high = value.low, value.high
        symbol = value.symbol
        if low is None or value.number == 0 or (symbol is not None and symbol.kind == "free_port"):
            continue  # 0: whichever is free
        if low > 65535 or (symbol is not None and symbol.kind == "job_id" and high is None):
            edits = _formula(subject, place) if name == "MASTER_PORT" else ()
            yield Found(f"{name} can be above 65535, the greatest port there is", place, fix=_FIX, edits=edits)
        elif high is not None and high > 65535:
            edits = _formula(subject, place) if name == "MASTER_PORT" else ()
            said = f"{name} can be above 65535 (up to {high})"
            yield Found(said, place, severity="warning", fix=_FIX, edits=edits)
        elif low < 1024 and (symbol is None or symbol.kind in ("random", "job_id", "number")):
            yield Found(
                f"{name} can be below 1024 (from {low}), where only root may listen",
                place,
                severity="error" if value.number is not None else "warning",
                fix="add 10000",
            )


def _same_port(subject: Subject) -> Iterator[Found]:
    """Launches that run at the same time on one node and listen on the same port."""
    held: dict[str, LaunchRanks] = {}
    for ranks in subject.launches:
        launch = ranks.launch
        if not launch.command.background:
            if not launch.command.loop and not parts.is_tool(launch):
                port = _own_port(subject, ranks)
                if port and port in held:
                    yield _collides(ranks, port)
            continue
        port = _own_port(subject, ranks)
        if port is None:
            continue
        if port in held or (launch.command.loop and not parts.stepped(launch)):
            yield _collides(ranks, port)
        held[port] = ranks
    return


def _own_port(subject: Subject, ranks: LaunchRanks) -> str | None:
    inner = parts.framework_of(ranks.launch)
    if parts.stepped(ranks.launch) and (ranks.launch.command.loop or parts.fewest_nodes(subject) > 1):
        return None
    if inner is not None:
        if inner.option("standalone") or inner.launcher not in ("torchrun", "accelerate", "deepspeed", "composer"):
            return None
        nodes = inner.option("nnodes")
        if nodes is not None and nodes.value.number != 1:
            return None
        if inner.option("rdzv_backend") is not None and inner.option("rdzv_endpoint") is None:
            return None
    elif not parts.trains(ranks.launch) or "MASTER_PORT" not in ranks.launch.leaf.environment:
        return None
    port = ranks.endpoint.port
    if port is None:
        if inner is None or inner.launcher == "composer" or inner.option("master_port"):
            return None
        return "29500"
    if port.is_const:
        return None if port.text == "0" else port.text
    return str(port) if port.has("job_id") and not port.is_unknown else None


def _collides(ranks: LaunchRanks, port: str) -> Found:
    return Found(
        f"this launch and an earlier one that still runs in the background both use port {port}",
        ranks.launch.place,
        fix="give each its own --master-port, or --standalone (torchrun finds a free one)",
    )


def _per_task(subject: Subject) -> Iterator[Found]:
    tasks = [r for r in subject.launches if parts.stepped(r.launch)]
    if not tasks or all((r.nodes or 2) * (r.outer_per_node or 2) == 1 for r in tasks):
        return
    seen: set[tuple[int, int]] = set()
    lines = {r.place.line for r in subject.script.references("RANDOM", "task")}
    for assignment in subject.script.assignments:
        drawn = assignment.context == "task" and assignment.value.has("random", "free_port")
        if assignment.name in _NAMES and drawn and parts.once(seen, assignment.place):
            edits = _formula(subject, assignment.place) if assignment.name == "MASTER_PORT" else ()
            yield _differs(assignment.name, assignment.place, edits)
    for ranks in tasks:
        inner = parts.framework_of(ranks.launch)
        for name in ("master_port", "rdzv_endpoint"):
            option = inner.option(name) if inner else None
            if option is None or option.context != "task" or (ranks.nodes or 2) < 2:
                continue
            if option.value.has("random") and option.place.line in lines and parts.once(seen, option.place):
                yield _differs(option.flag, option.place)


def _differs(name: str, place: Place, edits: tuple[Edit, ...] = ()) -> Found:
    return Found(
        f"{name} is drawn in each process, so each has another port",
        place,
        fix="draw it once in the batch script and export it",
        edits=edits,
    )


def _formula(subject: Subject, place: Place) -> tuple[Edit, ...]:
    """The arithmetic that a port is set to becomes one of the job's id, the same in every process."""
    if subject.script.scheduler != "slurm" or place.file or not 0 < place.line <= len(subject.lines):
        return ()
    found = _ARITHMETIC.findall(subject.lines[place.line - 1])
    return parts.replace_text(subject, place, found[0], _FIX) if len(found) == 1 else ()


RULES = (
    Rule(
        id="fixed-port", fault_class="PORT_COLLISION", severity="warning",
        title="a fixed port",
        why="Two jobs on one node, or a process left over from the last run, make the second fail with 'address"
        " already in use'.",
        source="https://github.com/facebookresearch/XLM/issues/53",
        fix="Derive the port from the job's id.",
        bad=_HEAD + "export MASTER_PORT=29500\nsrun python train.py\n",
        good=_HEAD + "export MASTER_PORT=$((10000 + SLURM_JOB_ID % 20000))\nsrun python train.py\n", check=_fixed,
    ),
    Rule(
        id="port-in-ephemeral-range", fault_class="PORT_COLLISION", severity="warning",
        title="a port from the range of outgoing connections",
        why="Linux takes ports 32768 to 60999 for outgoing connections, so the chosen one may be in use when the"
        " program binds it.",
        source="https://github.com/NVIDIA/mlperf-common/pull/9",
        fix="Choose below 32768.",
        bad=_HEAD + "export MASTER_PORT=$((49152 + SLURM_JOB_ID % 16384))\nsrun python train.py\n",
        good=_HEAD + "export MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))\nsrun python train.py\n", check=_ephemeral,
    ),
    Rule(
        id="port-out-of-range", fault_class="PORT_COLLISION", severity="error",
        title="a port that cannot be used",
        why="Ports end at 65535, and those below 1024 are root's; a job id or $RANDOM alone goes beyond either.",
        source="https://man7.org/linux/man-pages/man7/ip.7.html (ip_unprivileged_port_start)",
        fix="Keep it between 10000 and 30000.",
        bad=_HEAD + "export MASTER_PORT=$((65500 + SLURM_JOB_ID))\nsrun python train.py\n",
        good=_HEAD + "export MASTER_PORT=$((10000 + SLURM_JOB_ID % 20000))\nsrun python train.py\n", check=_range,
    ),
    Rule(
        id="one-port-for-two-launches", fault_class="PORT_COLLISION", severity="error",
        title="launches at the same time on one port",
        why="torchrun and its like listen on port 29500 unless told otherwise; the second launch on a node cannot.",
        source="https://docs.pytorch.org/docs/stable/elastic/run.html (--master-port, --standalone)",
        fix="Another port for each.",
        bad=_HEAD + "torchrun --nproc-per-node=2 a.py &\ntorchrun --nproc-per-node=2 b.py &\nwait\n",
        good=_HEAD + "torchrun --standalone --nproc-per-node=2 a.py &\n"
        "torchrun --standalone --nproc-per-node=2 b.py &\n"
        "wait\n",
        check=_same_port,
    ),
    Rule(
        id="port-per-process", fault_class="PORT_COLLISION", severity="error",
        title="each process draws its own port",
        why="$RANDOM or a search for a free port gives another number wherever it runs.",
        source="https://docs.pytorch.org/docs/stable/distributed.html#environment-variable-initialization",
        fix="Draw it once.",
        bad=_HEAD + "srun bash -c 'export MASTER_PORT=$((10000 + RANDOM % 20000)); python train.py'\n",
        good=_HEAD + "export MASTER_PORT=$((10000 + RANDOM % 20000))\nsrun python train.py\n", check=_per_task,
    ),
)  # fmt: skip
