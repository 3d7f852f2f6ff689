"""Containers: GPU option, image, engine."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.finding import Edit
from maple_parsl.rules.asking import cite, kinds, row, submitted, texts
from maple_parsl.rules.base import Family, Found, Subject
from maple_parsl.rules.gpu_requests import any_gpu_option
from maple_parsl.script.model import Command, Place

_ENGINES = ("apptainer", "singularity")
_GPU_FLAGS = frozenset("--nv --nvccli --rocm --oci --compat".split())
_FOREIGN_ARCH = {
    "aarch64": re.compile(r"x86[_-]64|amd64|linux64", re.I),
    "x86_64": re.compile(r"aarch64|arm64", re.I),
}
_AMD = re.compile(r"rocm|\bamd|\bmi[23]\d\d|lumi|\bHIP_|ROCR_|RCCL|MIOPEN|hsa_", re.I)
_SCHEMES = re.compile(r"(?:docker|dockerd|oras|library|shub|https?|docker-daemon|docker-archive|file|instance)://")


def _engine(command: Command) -> list[str] | None:
    """The engine's words where a command starts a container, also behind a launcher."""
    words = texts(command)
    for index, word in enumerate(words):
        if word.rpartition("/")[2] in _ENGINES and any(
            w in ("exec", "run", "shell") for w in words[index + 1 : index + 8]
        ):
            return words[index:]
    return None


def _containers(subject: Subject) -> Iterator[tuple[Command, list[str]]]:
    seen = set()
    for command in subject.script.commands:
        words = _engine(command)
        if words is not None and command.place.line not in seen:
            seen.add(command.place.line)
            yield command, words


def _uses_gpus(subject: Subject) -> bool:
    found = kinds(subject)
    if found:
        return all(k.vendor in ("nvidia", "amd") and k.gpus for k in found)
    return any_gpu_option(subject) or bool(subject.ranks.gpus_per_node)


def _no_gpu_option(subject: Subject) -> Iterator[Found]:
    if not submitted(subject) or not _uses_gpus(subject):
        return
    env = {a.name for a in subject.script.assignments}
    if env & {"APPTAINER_NV", "SINGULARITY_NV", "APPTAINER_ROCM", "SINGULARITY_ROCM", "APPTAINER_NVCCLI"}:
        return
    found = kinds(subject)
    vendors = {k.vendor for k in found}
    if vendors == {"amd"} or (not found and _AMD.search(subject.script.text)):
        return  # images with ROCm of their own need the devices only, which are there
    for command, words in _containers(subject):
        verb = next(w for w in words if w in ("exec", "run", "shell"))
        if any(not w for w in words) or any(w in _GPU_FLAGS for w in words):
            continue  # an option may stand in a variable
        flag = "--nv" if vendors == {"nvidia"} else "--rocm" if vendors == {"amd"} else None
        text = row(subject, command.place)
        line = command.place.line
        edits: tuple[Edit, ...] = ()
        if flag and text.count(f"{words[0]} {verb}") == 1:
            edits = (
                Edit(
                    first=line,
                    last=line,
                    text=text.replace(f"{words[0]} {verb}", f"{words[0]} {verb} {flag}"),
                    safe=True,
                ),
            )
        yield Found(
            f"{words[0].rpartition('/')[2]} {verb} without {flag or '--nv (NVIDIA) or --rocm (AMD)'}: the container sees"
            " no GPU driver",
            command.place,
            severity=None if flag else "warning",
            edits=edits,
        )


def _other_vendor(subject: Subject) -> Iterator[Found]:
    found = kinds(subject)
    vendors = {k.vendor for k in found}
    if len(vendors) != 1:
        return
    wrong = {"amd": "--nv", "nvidia": "--rocm"}.get(next(iter(vendors)))
    for command, words in _containers(subject):
        if wrong in words:
            yield Found(
                f"{wrong} on nodes with GPUs of {next(iter(vendors)).upper()}", command.place, evidence=cite(found[0])
            )


def _images(subject: Subject) -> Iterator[tuple[str, Place]]:
    for name in ("--container-image", "--image", "--container"):
        directive = subject.script.directive(name)
        if directive is not None and directive.value and not directive.variables:
            yield directive.value, directive.value_place or directive.place
    for launch in subject.script.all_launches:
        option = launch.option("container_image")
        if option is not None and option.value.text:
            yield option.value.text, option.place
    for command, words in _containers(subject):
        for word in words[1:]:
            if _SCHEMES.match(word) or re.search(r"\.(?:sif|img|sqsh|simg)\Z", word):
                yield word, command.place
                break


def _reference(subject: Subject) -> Iterator[Found]:
    for image, place in _images(subject):
        wrong = None
        if len(_SCHEMES.findall(image)) > 1:
            wrong = "two schemes in one reference"
        elif re.search(r"\s", image):
            wrong = "a blank in the reference"
        elif image.startswith("dockerd://"):
            wrong = "an image of a local Docker daemon, which compute nodes do not have"
        elif re.match(r"docker:/[^/]", image):
            wrong = "one slash behind docker:"
        if wrong:
            yield Found(f"image {image!r}: {wrong}", place)


def _architecture(subject: Subject) -> Iterator[Found]:
    found = kinds(subject)
    arches = {k.arch for k in found}
    if len(arches) != 1:
        return
    arch = next(iter(arches))
    pattern = _FOREIGN_ARCH.get(arch or "")
    for image, place in _images(subject):
        match = pattern.search(image) if pattern else None
        if match:
            yield Found(f"image {image!r} is for {match[0]}; the nodes are {arch}", place, evidence=cite(found[0]))


def _docker(subject: Subject) -> Iterator[Found]:
    if not submitted(subject):
        return
    for command in subject.script.commands:
        words = texts(command)
        names = [w.rpartition("/")[2] for w in words]
        at = names.index("docker") if "docker" in names[:1] or (names[:1] == ["srun"] and "docker" in names) else -1
        if at < 0 or words[at + 1 : at + 2] != ["run"]:
            continue
        gpus = any(w.startswith(("--gpus", "--runtime", "--device")) for w in words) or any(not w for w in words)
        if not gpus and _uses_gpus(subject):
            yield Found("docker run without --gpus: the container sees no GPU", command.place)


_S = "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gpus-per-node=4\n#SBATCH --time=00:10:00\n"
_DELTA = _S + "#SBATCH --account=demo-delta-gpu\n#SBATCH --partition=gpuA100x4\n#SBATCH --mem=0\n"
_GH = "#!/bin/bash\n#SBATCH --partition=gh\n#SBATCH --nodes=1\n#SBATCH --ntasks-per-node=1\n#SBATCH --time=00:10:00\n"
_APPTAINER = "https://apptainer.org/docs/user/main/gpu.html"
_PYXIS = "https://github.com/NVIDIA/pyxis/issues/70; https://github.com/NVIDIA/enroot/blob/master/doc/cmd/import.md"


_FAMILY = Family("CONTAINER_REF")


_RUN = "apptainer exec {}image.sif python t.py\n"
RULES = (
    _FAMILY.rule(
        "container-gpu-option",
        "error",
        "a container without the GPU option",
        "Without it the driver's files are not in the container and torch finds no device.",
        "Add --nv (NVIDIA) or --rocm (AMD).",
        _S + "srun " + _RUN.format(""),
        _S + "srun " + _RUN.format("--nv "),
        _no_gpu_option,
        source=_APPTAINER,
    ),
    _FAMILY.rule(
        "container-gpu-vendor",
        "error",
        "the GPU option of another vendor",
        "It brings in the other vendor's driver, which is not there.",
        "Use the option of these GPUs.",
        _DELTA + "srun " + _RUN.format("--rocm "),
        _DELTA + "srun " + _RUN.format("--nv "),
        _other_vendor,
        source=_APPTAINER,
        site="delta",
    ),
    _FAMILY.rule(
        "image-reference",
        "error",
        "an image reference that cannot be read",
        "The engine takes one scheme and one name.",
        "Import the image to a file first, or name it as registry#image:tag.",
        _S + "srun --container-image=docker://dockerd://img python t.py\n",
        _S + "srun --container-image=nvcr.io#nvidia/pytorch:24.10-py3 python t.py\n",
        _reference,
        source=_PYXIS,
    ),
    _FAMILY.rule(
        "image-architecture",
        "error",
        "an image for another processor",
        "Programs for another architecture do not start: exec format error.",
        "Use an image for the nodes' architecture.",
        _GH + "ibrun apptainer exec --nv torch-x86_64.sif python t.py\n",
        _GH + "ibrun apptainer exec --nv torch-aarch64.sif python t.py\n",
        _architecture,
        source="the site's documentation",
        site="vista",
    ),
    _FAMILY.rule(
        "docker-gpu-option",
        "warning",
        "docker run without GPUs",
        "Docker shows no device unless asked to.",
        "Add --gpus all.",
        _S + "docker run image python t.py\n",
        _S + "docker run --gpus all image python t.py\n",
        _docker,
        source="https://docs.docker.com/engine/containers/resource_constraints/#gpu",
    ),
)
