"""Workers of Parsl and Globus Compute, as configured inside a script or by a line that starts them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.rules import parts
from maple_parsl.rules.base import Found, Rule, Subject
from maple_parsl.script.model import Place

_PROVIDER = re.compile(
    r"\b(?:SlurmProvider|PBSProProvider|PBSProvider|TorqueProvider|LSFProvider|CobaltProvider|GridEngineProvider)\b"
)
_INIT = re.compile(r"worker_init\s*[=:]\s*(?P<text>.*)")
_ADDRESS = re.compile(r"^[^#\n]*\baddress\s*[=:]\s*['\"](?P<host>localhost|127\.[\d.]+|0\.0\.0\.0)['\"]", re.M)
_NODES = re.compile(r"\bnodes_per_block\s*[=:]\s*(?P<count>\d+)")
_LAUNCHER = re.compile(
    r"\blauncher\s*[=:]\s*(?:\n\s*type\s*:\s*)?(?:parsl\.launchers\.)?(?P<name>SimpleLauncher|SingleNodeLauncher)\b"
)
_ANY_LAUNCHER = re.compile(r"\blauncher\s*[=:]")
_ENGINE = re.compile(r"\b(?:HighThroughputExecutor|GlobusComputeEngine|MPIExecutor|WorkQueueExecutor)\b")
_ACCELERATORS = re.compile(r"\bavailable_accelerators\s*[=:]\s*(?P<count>\d+)")
_WORKERS = re.compile(r"\bmax_workers(?:_per_node)?\s*[=:]\s*(?P<count>\d+)")
_ACTIVATES = re.compile(r"activate|module|conda|source|\. /|PATH")
_START = re.compile(r"globus-compute-endpoint|process_worker_pool|funcx-endpoint")
_CODE = "#!/bin/bash\ncat > config.py <<'END'\nfrom parsl.config import Config\n{}END\npython run.py\n"
_CONFIG = (
    "config = Config(executors=[HighThroughputExecutor({address}max_workers_per_node=4, available_accelerators=4,\n"
    "  provider=SlurmProvider(nodes_per_block=2, launcher={launcher}(), worker_init='{init}'))])\n"
)
_GOOD = _CODE.format(_CONFIG.format(address="", launcher="SrunLauncher", init="source ~/venv/bin/activate"))


def _place(subject: Subject, offset: int) -> Place:
    text = subject.script.text
    start = text.rfind("\n", 0, offset) + 1
    return Place(text.count("\n", 0, offset) + 1, offset - start + 1)


def _configured(subject: Subject) -> bool:
    return bool(_PROVIDER.search(subject.script.text))


def _no_environment(subject: Subject) -> Iterator[Found]:
    text = subject.script.text
    provider = _PROVIDER.search(text)
    if provider is None or not (_ENGINE.search(text) or "parsl" in text):
        return
    init = _INIT.search(text)
    if init is None:
        yield Found(
            f"{provider[0]} without worker_init: workers start in a bare shell, where Parsl may be missing or another"
            " version",
            _place(subject, provider.start()),
        )
    elif init["text"].strip().rstrip(",)") in ("''", '""', '""""""', "None"):
        yield Found("worker_init is empty: workers start in a bare shell", _place(subject, init.start()))


def _address(subject: Subject) -> Iterator[Found]:
    text = subject.script.text
    if not _configured(subject):
        return
    for match in _ADDRESS.finditer(text):
        yield Found(
            f"workers on other nodes are told to connect to {match['host']}, which is themselves",
            _place(subject, match.start("host")),
            fix="leave it out, or address_by_interface('…') of a network both sides are on",
        )


def _launcher(subject: Subject) -> Iterator[Found]:
    text = subject.script.text
    nodes = _NODES.search(text)
    if not _configured(subject) or nodes is None or int(nodes["count"][:6]) < 2:
        return
    found = _LAUNCHER.search(text)
    if found is not None:
        yield Found(
            f"{found['name']} starts workers on the first of the block's {nodes['count']} nodes only",
            _place(subject, found.start()),
            fix="SrunLauncher (Slurm) or MpiExecLauncher (PBS)",
        )
    elif not _ANY_LAUNCHER.search(text):
        yield Found(
            f"no launcher is named for {nodes['count']} nodes per block; the default starts workers on the first only",
            _place(subject, nodes.start()),
            severity="warning",
            fix="SrunLauncher (Slurm) or MpiExecLauncher (PBS)",
        )


def _workers(subject: Subject) -> Iterator[Found]:
    text = subject.script.text
    accelerators, workers = _ACCELERATORS.search(text), _WORKERS.search(text)
    if accelerators is None or workers is None or not _ENGINE.search(text):
        return
    count, each = int(accelerators["count"][:6]), int(workers["count"][:6])
    if each != count:
        yield Found(
            f"{each} workers per node and {count} accelerators: Parsl starts one worker per accelerator at most"
            if each > count
            else f"{each} workers per node leave {count - each} of {count} accelerators unused",
            _place(subject, workers.start()),
        )


def _started(subject: Subject) -> Iterator[Found]:
    for ranks in subject.launches:
        words = " ".join(str(w) for w in ranks.launch.leaf.program[:4])
        whole = " ".join(str(w) for w in ranks.launch.leaf.program)
        match = _START.search(words)
        if match is None or not parts.stepped(ranks.launch):
            continue
        if loop := re.search(r"(?:-a|--addresses)[= ](localhost|127\.[\d.]+)", whole):
            yield Found(
                f"workers are told to connect to {loop[1]}, which is themselves on every other node",
                ranks.launch.place,
                fix="an address of the node that runs Parsl, which the others reach",
            )
        if match[0] != "process_worker_pool":
            if (ranks.processes or 2) > 1:
                yield Found(
                    f"{ranks.launch.launcher} starts {match[0]} in each task; one endpoint starts its workers itself",
                    ranks.launch.place,
                    fix=f"start {match[0]} once, without {ranks.launch.launcher}",
                )
        elif (ranks.outer_per_node or 1) > 1:
            yield Found(
                f"the worker pool is started {ranks.outer_per_node} times per node; one pool starts a node's workers",
                ranks.launch.place,
                fix="one task per node",
            )


RULES = (
    Rule(
        id="worker-environment-missing", fault_class="EXECUTOR_WORKER", severity="warning",
        title="workers without an environment",
        why="Workers start in a new shell on the compute node. Without worker_init they lack Parsl, or have another"
        " version than the submitting side, and the block ends without a task done.",
        source="https://github.com/Parsl/parsl/issues/1570",
        fix="Activate the environment in worker_init.",
        bad=_CODE.format("config = Config(executors=[HighThroughputExecutor(provider=SlurmProvider('gpu'))])\n"),
        good=_GOOD, check=_no_environment,
    ),
    Rule(
        id="worker-address-loopback", fault_class="EXECUTOR_WORKER", severity="error",
        title="workers are told a loopback address",
        why="Workers on compute nodes connect back to the address given; localhost is their own node.",
        source="https://github.com/Parsl/parsl/issues/1246",
        fix="An address the compute nodes reach.",
        bad=_CODE.format(_CONFIG.format(address="address='127.0.0.1', ", launcher="SrunLauncher", init="module load")),
        good=_GOOD, check=_address,
    ),
    Rule(
        id="worker-launcher-single-node", fault_class="EXECUTOR_WORKER", severity="error",
        title="a launcher for one node in blocks of several",
        why="SimpleLauncher and SingleNodeLauncher run on the first node of a block.",
        source="https://parsl.readthedocs.io/en/stable/userguide/configuration/execution.html#launchers",
        fix="SrunLauncher or MpiExecLauncher.",
        bad=_CODE.format(_CONFIG.format(address="", launcher="SingleNodeLauncher", init="module load x")),
        good=_GOOD, check=_launcher,
    ),
    Rule(
        id="workers-differ-from-accelerators", fault_class="EXECUTOR_WORKER", severity="warning",
        title="workers per node are not the accelerators",
        why="Each worker is given one accelerator; the lower of both numbers counts.",
        source="https://parsl.readthedocs.io/en/stable/stubs/parsl.executors.HighThroughputExecutor.html",
        fix="The same number.",
        bad=_GOOD.replace("available_accelerators=4", "available_accelerators=2"), good=_GOOD, check=_workers,
    ),
    Rule(
        id="workers-started-per-task", fault_class="EXECUTOR_WORKER", severity="error",
        title="an endpoint or worker pool per task",
        why="An endpoint, and a pool on each node, start their workers themselves.",
        source="https://globus-compute.readthedocs.io/en/stable/endpoints/endpoints.html",
        fix="One per job, or one per node.",
        bad="#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\nsrun globus-compute-endpoint start main\n",
        good="#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\nglobus-compute-endpoint start main\n",
        check=_started,
    ),
)  # fmt: skip
