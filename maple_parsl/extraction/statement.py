"""Reading → Request: only what was stated, in the form a plan takes, with what could not be carried over."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

from maple_parsl.errors import RequestError
from maple_parsl.extraction.reading import Reading
from maple_parsl.request import MODELS, PARADIGMS, Request

# How a framework's name chooses the way it starts; PyTorch has the site's own default.
_TEMPLATES = {
    "accelerate": "accelerate",
    "deepspeed": "deepspeed",
    "lightning": "lightning",
    "megatron": "megatron",
    "megatron-deepspeed": "megatron",
}
_AS_DDP = frozenset({"single", "horovod", "lora", "qlora", "sp", "cp", "ep"})


@dataclass(frozen=True)
class Statement:
    """A request made of a reading. ``notes``: what was stated and has no place in a plan."""

    request: Request
    notes: tuple[str, ...] = ()


def statement(reading: Reading) -> Statement:
    """The request that a reading states; what follows from a site's facts is left to the plan.

    Raises:
        RequestError: a stated value is malformed.
    """
    fields: dict[str, Any] = {}
    notes: list[str] = []
    for name in ("model", "site", "nodes", "account", "queue", "name", "script", "conda", "venv", "container"):
        if (value := reading.get(name)) is not None:
            fields[name] = value
    if (minutes := reading.get("walltime_min")) is not None:
        fields["walltime"] = f"{minutes}m"
    gpus = reading.values.get("gpus_per_node")
    if gpus is not None and gpus.value and (gpus.basis != "follows" or "gpus_total" in reading.values):
        fields["gpus_per_node"] = gpus.value
        fields["whole_gpus"] = bool(reading.get("whole_gpus"))
    if (args := reading.get("args")) is not None:
        fields["args"] = _split(str(args))
    if (precision := reading.get("precision")) in ("fp32", "bf16", "fp16"):
        fields["precision"] = precision
    elif precision is not None:
        notes.append(f"{precision} is for your program to use; Maple passes on fp32, bf16 and fp16 only")
    _paradigm(reading, fields, notes)
    if reading.get("port") is not None:
        notes.append("the port is chosen when the job runs, a free one; a fixed one could be taken")
    if own := family(str(fields.get("model"))):
        fields["model"] = own
    return Statement(Request.of(**fields), tuple(notes))


def family(model: str) -> str | None:
    """The family of Maple's own small models that a name is, when it says no more than that (``U-Net``)."""
    plain = model.lower().replace("-", "").replace(" ", "")
    return plain if plain in MODELS else None


def own_paradigm(name: str) -> bool:
    """Whether Maple's own small models train that way."""
    return name.removeprefix("deepspeed-").rstrip("0123456789") in (*PARADIGMS, "zero") or name in PARADIGMS


def _paradigm(reading: Reading, fields: dict[str, Any], notes: list[str]) -> None:
    stated, framework = reading.get("paradigm"), reading.get("framework")
    if framework in _TEMPLATES and reading.values["framework"].basis == "stated":
        fields["template"] = _TEMPLATES[framework]
    elif framework is not None and framework not in (*_TEMPLATES, "pytorch"):
        notes.append(f"there is no template for {framework}; the processes are started with RANK and WORLD_SIZE set")
    if stated is None:
        return
    name = str(stated)
    kind = next((each for each in ("zero", "fsdp", "3d") if each in name), None)
    sized = [
        part for part in name.split("-") if part[:2] in ("tp", "pp") and (part[2:].isdecimal() or part in ("tp", "pp"))
    ]
    if kind is None:
        kind = "3d" if len(sized) > 1 else sized[0][:2] if sized else None
    if kind is None and name.startswith("ddp"):
        kind = "ddp"
    if kind is None and name == "deepspeed":
        kind = "zero"
        notes.append("DeepSpeed's stage is taken from your own configuration")
    if kind is None and name == "megatron":
        kind = "ddp" if reading.get("script") else None
    if kind is None and name in PARADIGMS:
        kind = name
    if kind is None and name not in _AS_DDP:
        notes.append(f"{name} has no start of its own; each device gets one process")
    if kind is not None:
        fields["paradigm"] = kind
    if (stage := reading.get("zero_stage")) is not None and kind == "zero":
        fields["zero_stage"] = stage
    degrees = {each: reading.get(each) for each in ("tp", "pp", "dp") if reading.get(each) is not None}
    if degrees and kind in ("tp", "pp", "3d"):
        whole = (reading.get("nodes") or 0) * (reading.get("gpus_per_node") or 0)
        product = 1
        for degree in degrees.values():
            product *= int(degree)
        if kind != "3d" and whole and product != whole:
            fields["paradigm"] = "3d"  # the rest of the devices are data parallel
            degrees.setdefault("pp" if kind == "tp" else "tp", 1)
        fields.update(degrees)


def _split(args: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(args))
    except ValueError as error:
        raise RequestError(
            f"the arguments {args!r} cannot be read as words of a shell: {error}; check their quotes"
        ) from None
