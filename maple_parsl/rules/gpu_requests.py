"""How GPUs are asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.rules.asking import (
    GPU_OPTIONS,
    asked,
    commands,
    gpus_of,
    nodes,
    option,
    per_node_gpus,
    row,
    submitted,
    texts,
    whole,
)
from maple_parsl.rules.base import Family, Found, Subject

_SAYS = re.compile(
    r"(?:(?:nodes?|machines?)\s+(?:has|have|with|of)\s+(?:only\s+)?(\d+)(?:\s*x?\s*(?:gpus?|[avh]\d{2,3}))?(?!\w)"
    r"|(\d+)\s*x?\s*(?:[avh]\d{2,3}\s*)?gpus?\s*(?:per|/|on (?:a|each|every))\s*(?:node|machine))",
    re.I,
)
_GRES = re.compile(r"(?:[\w.-]+)(?::[\w.-]+)*(?::\d+[KMG]?)?(?:\([^)]*\))?(?:,|\Z)")


def _gpu_comment(subject: Subject) -> Iterator[Found]:
    found = per_node_gpus(subject)
    if found is None:
        return
    count, directive = found
    match = _SAYS.search(directive.comment or "")
    said = int(match[1] or match[2]) if match else None
    if said is not None and said < count:
        yield Found(
            f"{directive.flag} asks for {count} GPUs per node, and the comment says the node has {said}",
            directive.value_place or directive.place,
        )


def _total_and_per_node(subject: Subject) -> Iterator[Found]:
    found = per_node_gpus(subject)
    total = subject.script.directive("--gpus")
    count = gpus_of(total)
    if found is not None and total is not None and count is not None:
        number = nodes(subject)
        if number and found[0] * number != count:
            yield Found(
                f"{found[1].flag}={found[1].value} on {number} nodes is {found[0] * number} GPUs, --gpus says {count}",
                total.place,
            )
        else:
            yield Found(
                f"--gpus={count} and {found[1].flag} both ask for GPUs; one is enough", total.place, severity="note"
            )
    gres, per_node = subject.script.directive("--gres"), subject.script.directive("--gpus-per-node")
    first, second = gpus_of(gres), gpus_of(per_node)
    if gres is not None and per_node is not None and first is not None and second is not None:
        differ = first != second
        yield Found(
            f"--gres={gres.value} and --gpus-per-node={per_node.value} "
            + ("contradict each other" if differ else "ask for the same twice"),
            gres.place,
            severity="error" if differ else "note",
        )


def _total_too_small(subject: Subject) -> Iterator[Found]:
    total = subject.script.directive("--gpus")
    count, number = gpus_of(total), nodes(subject)
    if total is None or count is None or not number or per_node_gpus(subject) is not None:
        return
    if 0 < count < number:
        yield Found(f"--gpus is the total of the job: {count} GPUs cannot be on {number} nodes", total.place)
    elif count % number:
        yield Found(
            f"--gpus is the total of the job: {count} GPUs on {number} nodes are unequal",
            total.place,
            severity="warning",
        )


def _gres_form(subject: Subject) -> Iterator[Found]:
    for name in ("--gres", "--gpus", "--gpus-per-node", "--gpus-per-task"):
        directive = subject.script.directive(name)
        if directive is None or directive.variables or not directive.value:
            continue
        value = directive.value
        wrong = None
        if name == "--gres":
            if re.match(r"\d+\Z", value):
                wrong = f"gpu:{value}"
            elif re.match(r"gpus?[=:](?:[\w-]+[=:])?\d+\Z", value) and ("=" in value or value.startswith("gpus")):
                wrong = value.replace("=", ":").replace("gpus:", "gpu:")
        elif re.match(r"gpu[:=](?:[\w-]+[:=])?\d+\Z", value):
            wrong = re.split("[:=]", value, maxsplit=1)[1].replace("=", ":")
        if wrong:
            yield Found(
                f"{name}={value} is no form that Slurm reads; {name}={wrong} is",
                directive.value_place or directive.place,
            )


def _exclusive_options(words: dict[str, str | None]) -> str | None:
    if words.get("--ntasks-per-gpu") and words.get("--gpus-per-task"):
        return "--ntasks-per-gpu and --gpus-per-task"
    if words.get("--ntasks-per-gpu") and words.get("--tres-per-task"):
        return "--ntasks-per-gpu and --tres-per-task"
    if words.get("--cpus-per-gpu") and words.get("--cpus-per-task"):
        return "--cpus-per-gpu and --cpus-per-task"
    return None


_TWO = ("--ntasks-per-gpu", "--gpus-per-task", "--tres-per-task", "--cpus-per-gpu", "--cpus-per-task")


def _two_mappings(subject: Subject) -> Iterator[Found]:
    given = {name: (d.value if (d := subject.script.directive(name)) else None) for name in _TWO}
    if subject.script.scheduler == "slurm" and (both := _exclusive_options(given)):
        at = subject.script.directive(both.split()[-1])
        yield Found(f"{both} are mutually exclusive", at.place if at else None)
        return
    for command in commands(subject, "srun", "sbatch", "salloc"):
        words = texts(command)
        here = {name: option(words, name) for name in _TWO}
        kept = command.name == "srun"  # which reads what sbatch was asked for, but for the cores per task
        merged = {n: here[n] or (given[n] if kept and n != "--cpus-per-task" else None) for n in _TWO}
        if any(here.values()) and (both := _exclusive_options(merged)):
            yield Found(f"{both} are mutually exclusive", command.place)


def _per_task_alone(subject: Subject) -> Iterator[Found]:
    directive = subject.script.directive("--gpus-per-task")
    if directive is None or subject.script.scheduler != "slurm":
        return
    if asked(subject, "--ntasks", "--ntasks-per-node", "--ntasks-per-gpu", "--gpus") is None:
        yield Found("--gpus-per-task is given and no number of tasks", directive.place)


def any_gpu_option(subject: Subject) -> bool:
    """The script asks for GPUs in some way."""
    if asked(subject, *GPU_OPTIONS, "--tres-per-task", "-l ngpus") is not None:
        return True
    select = subject.script.directive("-l select")
    if select is not None and "ngpus=" in (select.value or ""):
        return True
    return any(
        word.startswith(GPU_OPTIONS) or word == "-G" for c in commands(subject, "srun", "salloc") for word in texts(c)
    )


def _none_stated(subject: Subject) -> Iterator[Found]:
    """Several processes per node from a framework's launcher, and no GPU in the request. Sites that hand out whole
    nodes want none, so this is for scripts whose site is not known."""
    if subject.site is not None or subject.script.scheduler != "slurm" or not submitted(subject):
        return
    if any_gpu_option(subject):
        return
    for ranks in subject.launches:
        local = ranks.launch.leaf.value("nproc_per_node")
        if ranks.framework and local is not None and (local.number or 0) > 1 and ranks.launch.launcher == "srun":
            yield Found(
                f"{ranks.framework} starts {local.number} processes per node and no GPU is asked for; that works where"
                " the whole node is given with its GPUs",
                ranks.launch.place,
            )
            return


def _needless(subject: Subject) -> Iterator[Found]:
    """A task count per GPU for a program that uses several."""
    for ranks in subject.launches:
        if not ranks.framework:
            continue
        directive = subject.script.directive("--ntasks-per-gpu")
        if whole(directive) and directive is not None:
            yield Found(
                f"--ntasks-per-gpu starts {ranks.framework} once for each GPU",
                directive.place,
                evidence=row(subject, directive.place),
            )
            return


_HEAD = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n"
_END = "srun python t.py\n"
_DOC = "https://slurm.schedmd.com/sbatch.html"


_FAMILY = Family("GPU_REQUEST", source=_DOC)


RULES = (
    _FAMILY.rule(
        "gpus-against-comment",
        "warning",
        "more GPUs per node than the comment says there are",
        "A request for more GPUs than a node has is refused: the requested node configuration is not available.",
        "Ask for the GPUs the node has.",
        _HEAD + "#SBATCH --gres=gpu:8   # a node has 4\n" + _END,
        _HEAD + "#SBATCH --gres=gpu:4   # a node has 4\n" + _END,
        _gpu_comment,
    ),
    _FAMILY.rule(
        "gpus-asked-twice",
        "error",
        "GPUs asked for in two ways",
        "--gpus is the job's total, --gpus-per-node and --gres are per node; different numbers are refused"
        " or leave devices unused.",
        "Keep one of them.",
        _HEAD + "#SBATCH --gpus-per-node=4\n#SBATCH --gpus=4\n" + _END,
        _HEAD + "#SBATCH --gpus-per-node=4\n" + _END,
        _total_and_per_node,
    ),
    _FAMILY.rule(
        "gpus-total-below-nodes",
        "error",
        "a total of GPUs taken for a number per node",
        "--gpus counts the GPUs of the whole job, over all its nodes.",
        "Use --gpus-per-node for a number per node.",
        "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --gpus=2\n" + _END,
        "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --gpus=16\n" + _END,
        _total_too_small,
    ),
    _FAMILY.rule(
        "gpu-request-form",
        "error",
        "a GPU request in a form Slurm does not read",
        "--gres takes name:type:count, the --gpus options type:count; anything else is an invalid generic resource.",
        "Write --gres=gpu:4 or --gpus-per-node=4.",
        _HEAD + "#SBATCH --gres=gpu=4\n" + _END,
        _HEAD + "#SBATCH --gres=gpu:a100:4\n" + _END,
        _gres_form,
    ),
    _FAMILY.rule(
        "gpu-mappings-exclusive",
        "error",
        "two ways of dealing GPUs or cores to tasks",
        "Slurm refuses the two together.",
        "Keep one.",
        _HEAD + "#SBATCH --gpus-per-task=1\n#SBATCH --ntasks-per-gpu=1\n" + _END,
        _HEAD + "#SBATCH --gpus-per-node=4\n" + _END,
        _two_mappings,
    ),
    _FAMILY.rule(
        "gpus-per-task-without-tasks",
        "warning",
        "GPUs per task without a number of tasks",
        "--gpus-per-task must be given with the number of tasks.",
        "Add --ntasks or --ntasks-per-node.",
        "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gpus-per-task=1\n" + _END,
        _HEAD + "#SBATCH --gpus-per-task=1\n#SBATCH --gpu-bind=none\n" + _END,
        _per_task_alone,
    ),
    _FAMILY.rule(
        "tasks-per-gpu-with-launcher",
        "error",
        "a per-node launcher started once per GPU",
        "--ntasks-per-gpu sets the number of tasks from the number of GPUs and shows each its own.",
        "Leave --ntasks-per-gpu out.",
        "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gpus=4\n#SBATCH --ntasks-per-gpu=1\nsrun torchrun --nproc-per-node=4 t.py\n",
        "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gpus=4\n#SBATCH --ntasks=1\nsrun torchrun --nproc-per-node=4 t.py\n",
        _needless,
    ),
    _FAMILY.rule(
        "gpus-unstated",
        "note",
        "no GPU is asked for",
        "Where GPUs are a resource of the scheduler, a job that asks for none sees none.",
        "Ask for the GPUs of a node, unless the site gives them with the node.",
        "#!/bin/bash\n#SBATCH --nodes=2\nsrun torchrun --nnodes=2 --nproc-per-node=4 t.py\n",
        "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gpus-per-node=4\nsrun torchrun --nnodes=2 --nproc-per-node=4 t.py\n",
        _none_stated,
    ),
)
