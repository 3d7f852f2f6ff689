"""Files of one node that other nodes expect, and caches in the wrong place."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from maple_parsl.rules import parts
from maple_parsl.rules.base import Found, Rule, Subject
from maple_parsl.script.model import Place
from maple_parsl.script.values import Value

_LOCAL = re.compile(
    r"(?:/tmp|/var/tmp|/dev/shm|/local(?:_?scratch)?|/localscratch|/scratch_local|/raid|/nvme|/mnt/(?:bb|nvme))(?:/|\Z)"
)
_LOCAL_NAMES = ("TMPDIR", "SLURM_TMPDIR", "JOB_TMPDIR", "LOCAL_SCRATCH", "TMP_LOCAL")
_WRITERS = frozenset("cp rsync tar unzip git wget curl virtualenv conda-unpack dd mv install unsquashfs".split())
_SPREAD = re.compile(r"\b(?:sbcast|pdcp|dcp|clush|copper)\b")
_OUTPUT = re.compile(
    r"(?:output|save|checkpoint|ckpt|log|result|exp|out|model)_?(?:dir|path|folder|to)?\Z|default_root_dir\Z"
)
# Variables that hold places of caches, as their programs spell them.
_KNOWN = (
    "MIOPEN_USER_DB_PATH MIOPEN_CUSTOM_CACHE_DIR MIOPEN_SYSTEM_DB_PATH MIOPEN_DISABLE_CACHE TRITON_CACHE_DIR"
    " TRITON_HOME TORCHINDUCTOR_CACHE_DIR TORCH_EXTENSIONS_DIR TORCH_HOME HF_HOME HF_DATASETS_CACHE HF_HUB_CACHE"
    " HUGGINGFACE_HUB_CACHE TRANSFORMERS_CACHE XDG_CACHE_HOME CUDA_CACHE_PATH NUMBA_CACHE_DIR MPLCONFIGDIR"
    " PYTHONPYCACHEPREFIX WANDB_DIR WANDB_CACHE_DIR VLLM_CACHE_ROOT SYCL_CACHE_DIR"
).split()  # fmt: skip
_PREFIXES = ("MIOPEN_USER", "MIOPEN_CUSTOM", "MIOPEN_CACHE", "TRITON_CACHE", "TORCHINDUCTOR_CACHE", "TORCH_EXT",
             "HF_DATASETS_CACHE", "TRANSFORMERS_CACHE", "XDG_CACHE", "CUDA_CACHE", "NUMBA_CACHE", "SYCL_CACHE")  # fmt: skip
_RIGHT = frozenset("MIOPEN_CUSTOM_CACHE_DIR XDG_CACHE_DIR CUDA_CACHE_DISABLE CUDA_CACHE_MAXSIZE SYCL_CACHE_PERSISTENT"
                   " SYCL_CACHE_THRESHOLD TRITON_CACHE_MANAGER SYCL_CACHE_MAX_SIZE".split())  # fmt: skip
_CACHES = ("MIOPEN_USER_DB_PATH", "MIOPEN_CUSTOM_CACHE_DIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
_HEAD = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n"


def _is_local(value: Value) -> bool:
    first = value.parts[0] if value.parts else ""
    if isinstance(first, str):
        return bool(_LOCAL.match(first))
    return first.kind == "environment" and first.detail in _LOCAL_NAMES


def _root(value: Value) -> str:
    return str(value).rstrip("/")


def _written(subject: Subject) -> dict[str, Place]:
    """Node-local paths that the batch shell fills, and so only on the first node."""
    found: dict[str, Place] = {}
    for command in subject.script.commands:
        if command.context != "batch":
            continue
        texts = [str(w) for w in command.words]
        targets: list[Value] = []
        if command.name in _WRITERS:
            targets = [w.value for w in command.words[1:] if _is_local(w.value)][-1:]
        elif "venv" in texts[:4] or (command.name == "conda" and "create" in texts[:3]):
            targets = [w.value for w in command.words[2:] if _is_local(w.value)][:1]
        targets += [t for mark, t in command.redirects if mark.startswith(">") and _is_local(t)]
        for target in targets:
            found.setdefault(_root(target), command.place)
    return found


def _first_node(subject: Subject) -> Iterator[Found]:
    if parts.fewest_nodes(subject) < 2 or _SPREAD.search(subject.script.text):
        return
    written = _written(subject)
    if not written:
        return
    wide = [r.launch for r in subject.launches if parts.stepped(r.launch) and (r.nodes or 2) > 1]
    copied = " ".join(str(launch.command) for launch in wide if not parts.trains(launch))
    last = max((launch.place for launch in wide), default=None)
    if last is None:
        return
    for root, place in written.items():
        if root in copied or place > last:
            continue
        used = None
        for launch in wide:
            if launch.place < place or not (parts.trains(launch) or launch.leaf.program):
                continue
            words = [*launch.program, *launch.leaf.program, *(w for p in launch.wrappers for w in p.words)]
            if any(_root(w.value).partition("=")[2].startswith(root) or _root(w.value).startswith(root) for w in words):
                used = launch.place
        for step in subject.script.steps_of("venv", "conda", "cd", "source"):
            if any(_root(w.value).startswith(root) for w in step.words) and place < step.place < last:
                used = step.place
        if used:
            yield Found(
                f"{root} is written by the batch shell, so it exists on the first node only, and is used on all",
                used,
                fix="copy it in a step on every node (srun --ntasks-per-node=1 cp …, sbcast), or keep it on a shared"
                " file system",
            )


def _lost(subject: Subject) -> Iterator[Found]:
    if parts.fewest_nodes(subject) < 2:
        return
    for ranks in subject.launches:
        if not parts.trains(ranks.launch) or (ranks.nodes or 1) < 2:
            continue
        for key, value, place in parts.settings(ranks.launch.leaf.program):
            text = str(value)
            if text.startswith("file://") and _LOCAL.match(text[7:]):
                yield Found(f"{text} is another file on each node, so the processes never meet", place, severity="error",
                            fix="env:// with MASTER_ADDR, or a file on a shared file system")  # fmt: skip
            elif _OUTPUT.search(key.rpartition(".")[2]) and _is_local(value):
                yield Found(
                    f"{key} is {text}, a place on each node alone: parts of a checkpoint stay on different nodes and are"
                    " gone when the job ends",
                    place,
                    fix="a place on a shared file system",
                )


def _misspelt(subject: Subject) -> Iterator[Found]:
    seen: set[str] = set()
    for assignment in subject.script.assignments:
        name = assignment.name
        if (
            name in _KNOWN
            or name in _RIGHT
            or name in seen
            or not name.startswith(_PREFIXES)
            or not assignment.exported
        ):
            continue
        near = difflib.get_close_matches(name, _KNOWN, 1, 0.75)
        if near:
            seen.add(name)
            yield Found(
                f"no program reads {name}; {near[0]} is meant",
                assignment.place,
                fix=near[0],
                edits=parts.replace_text(subject, assignment.place, name, near[0]),
            )


def _shared_cache(subject: Subject) -> Iterator[Found]:
    for assignment in subject.script.assignments:
        if assignment.name not in _CACHES or not assignment.exported:
            continue
        first = assignment.value.parts[0] if assignment.value.parts else ""
        home = not isinstance(first, str) and first.kind == "environment" and first.detail == "HOME"
        if (home or (isinstance(first, str) and first.startswith(("/home/", "/users/")))) and not assignment.value.has(
            "job_id", "per_task"
        ):
            yield Found(
                f"{assignment.name} lies in the home directory, which all nodes and jobs share: its database locks fail"
                " there",
                assignment.place,
                fix=f"export {assignment.name}=/tmp/$USER-$SLURM_JOB_ID",
            )


def _home(subject: Subject) -> Iterator[Found]:
    for assignment in subject.script.assigned("HOME"):
        if _is_local(assignment.value):
            yield Found(
                f"HOME becomes {assignment.value}: settings, keys and caches of the user are not found there",
                assignment.place,
                fix="set the variable of the cache that is meant (XDG_CACHE_HOME, HF_HOME, …)",
            )


RULES = (
    Rule(
        id="written-on-first-node", fault_class="NODE_LOCAL_STATE", severity="error",
        title="node-local files made on the first node only",
        why="/tmp and its like belong to one node; the batch shell fills them on the first only.",
        source="https://slurm.schedmd.com/sbcast.html",
        fix="Fill them in a step on every node.",
        bad=_HEAD + "cp -r data /tmp/data\nsrun python train.py --data /tmp/data\n",
        good=_HEAD + "srun --ntasks-per-node=1 cp -r data /tmp/data\nsrun python train.py --data /tmp/data\n",
        check=_first_node,
    ),
    Rule(
        id="results-on-one-node", fault_class="NODE_LOCAL_STATE", severity="warning",
        title="results or the meeting file on node-local disks",
        why="Each node writes its own directory, which is emptied after the job.",
        source="https://docs.pytorch.org/docs/stable/distributed.html#shared-file-system-initialization",
        fix="Use a shared file system.",
        bad=_HEAD + "srun python train.py --output_dir /tmp/run\n",
        good=_HEAD + "srun python train.py --output_dir $SCRATCH/run\n", check=_lost,
    ),
    Rule(
        id="cache-variable-misspelt", fault_class="NODE_LOCAL_STATE", severity="error",
        title="a cache variable that nothing reads",
        why="A misspelt name is ignored without a word, and the cache stays where it was.",
        source="https://github.com/Lumi-supercomputer/LUMI-AI-Guide/pull/108",
        fix="The right name.",
        bad=_HEAD + "export MIOPEN_USER_DB=/tmp/miopen\nsrun python train.py\n",
        good=_HEAD + "export MIOPEN_USER_DB_PATH=/tmp/miopen\nsrun python train.py\n", check=_misspelt,
    ),
    Rule(
        id="cache-on-shared-home", fault_class="NODE_LOCAL_STATE", severity="warning",
        title="a compiler cache in the home directory",
        why="Databases of MIOpen and Triton need file locks that network file systems lack.",
        source="https://github.com/ROCm/MIOpen/issues/1878",
        fix="A directory on the node, of the job's own.",
        bad=_HEAD + "export MIOPEN_USER_DB_PATH=$HOME/.miopen\nsrun python train.py\n",
        good=_HEAD + "export MIOPEN_USER_DB_PATH=/tmp/$USER-$SLURM_JOB_ID\nsrun python train.py\n", check=_shared_cache,
    ),
    Rule(
        id="home-on-node", fault_class="NODE_LOCAL_STATE", severity="warning",
        title="HOME on a node-local disk",
        why="Everything that looks for the user's files looks there.",
        source="https://specifications.freedesktop.org/basedir-spec/latest/",
        fix="Set the cache's own variable.",
        bad=_HEAD + "export HOME=/tmp/home\nsrun python train.py\n",
        good=_HEAD + "export XDG_CACHE_HOME=/tmp/cache\nsrun python train.py\n", check=_home,
    ),
)  # fmt: skip
