"""The name of a paradigm out of the techniques and the framework that were named."""

from __future__ import annotations

from maple_parsl.extraction.reading import Value
from maple_parsl.extraction.sentence import Found, Sentence

_PYTORCH = frozenset({"ddp", "ddp-gloo", "fsdp", "tp", "pp", "single"})
# How these libraries train when nothing more is said, by their own documentation: Accelerate wraps the model in
# DistributedDataParallel on several processes; Horovod is its own technique.
_BY_FRAMEWORK = {"accelerate": "ddp", "horovod": "horovod"}


def paradigm(sentence: Sentence, found: list[Found], single: bool) -> dict[str, Value]:
    """``paradigm``, ``framework`` and ``zero_stage``, where something states them."""
    now = [each for each in found if each.field == "paradigm"]
    fresh = [each for each in now if not each.past] or now
    last_correction = max((k for k, each in enumerate(fresh) if each.corrected), default=0)
    kept = (
        fresh[last_correction:]
        if last_correction and fresh[last_correction].value != fresh[last_correction - 1].value
        else fresh
    )
    names = list(dict.fromkeys(str(each.value) for each in kept))
    frameworks = [each for each in found if each.field == "framework"]
    framework = _framework(frameworks, names)
    spans = [sentence.place(each) for each in kept]
    degrees = {each.field: each.value for each in found if each.field in ("tp", "pp", "dp")}
    backend = next((each for each in found if each.field == "backend"), None)
    name = _name(names, framework, degrees, backend.value if backend else None)
    made: dict[str, Value] = {}
    if name is None and framework in _BY_FRAMEWORK:
        name = _BY_FRAMEWORK[framework]
    if name is not None and not spans:
        spans = [sentence.place(each) for each in frameworks]
    if name is None and single and not names:
        name = "single"
        spans = [
            (sentence.items[each.first].start, sentence.items[each.last].end)
            for each in found
            if each.field == "gpus_plain"
        ]
    if name is not None and spans:
        sure = min((each.sure for each in kept), default=0.9)
        made["paradigm"] = Value(name, min(s for s, _ in spans), max(e for _, e in spans), sure)
    stage = next((int(each[4:]) for each in names if each[:4] == "zero" and each[4:].isdecimal()), None)
    if stage:
        made["zero_stage"] = Value(stage, made["paradigm"].start, made["paradigm"].end)
    if framework is None and name is not None:
        implied = (
            "pytorch" if name in _PYTORCH or name.startswith(("tp", "pp")) else "horovod" if name == "horovod" else None
        )
        framework = "deepspeed" if name.startswith("deepspeed") else implied
        if framework and (value := made.get("paradigm")):
            made["framework"] = Value(framework, value.start, value.end, 0.9, "follows", f"{name} is {framework}'s")
    elif framework is not None:
        places = [sentence.place(each) for each in frameworks if each.value == framework] or spans
        made["framework"] = Value(framework, *places[0])
    return made


def _framework(frameworks: list[Found], names: list[str]) -> str | None:
    known = [str(each.value) for each in sorted(frameworks, key=lambda each: (each.past, each.first))]
    if "megatron" in known and "deepspeed" in known:
        return "megatron-deepspeed"
    ranked = [name for name in known if name != "pytorch"]
    return ranked[0] if ranked else known[0] if known else None


def _name(names: list[str], framework: str | None, degrees: dict[str, object], backend: str | None) -> str | None:
    zero = next(
        (name for name in names if name.startswith("zero") and name != "zero"), "zero" if "zero" in names else None
    )
    sized = [f"{each}{degrees.get(each, '')}" for each in ("tp", "pp") if each in names]
    if framework in ("megatron", "megatron-deepspeed"):
        if "3d" in names and not sized:
            return f"{framework}-3d"
        extra = f"-{zero}" if zero and framework == "megatron-deepspeed" else ""
        return "-".join([framework, *sized]) + extra
    if "3d" in names or len(sized) == 2:
        return "3d"
    if zero:
        if framework in (None, "deepspeed", "accelerate", "lightning", "megatron-deepspeed"):
            return "deepspeed" if zero == "zero" and framework == "deepspeed" else f"deepspeed-{zero}"
        return zero
    if framework == "deepspeed":
        return "-".join(["deepspeed", *sized])
    if sized:
        return sized[0]
    for name in ("fsdp", "horovod", "ddp"):
        if name in names:
            return "ddp-gloo" if name == "ddp" and backend == "gloo" else name
    others = [name for name in names if name != "dp"]
    return others[0] if others else "ddp" if "dp" in names else None
