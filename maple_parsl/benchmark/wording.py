"""The words of a request: the same needs, said tersely, plainly, or at length among things that do not matter."""

from __future__ import annotations

import random
import shlex
from collections.abc import Callable

from maple_parsl.benchmark.draw import Drawn

_PLACES = {
    "polaris": ("Polaris", "ALCF Polaris", "polaris"),
    "aurora": ("Aurora", "ALCF Aurora", "aurora"),
    "perlmutter": ("Perlmutter", "NERSC Perlmutter", "perlmutter"),
    "vista": ("Vista", "TACC Vista", "vista"),
    "lonestar6": ("Lonestar6", "TACC Lonestar6", "ls6"),
    "stampede3": ("Stampede3", "TACC Stampede3", "stampede3"),
    "delta": ("Delta", "NCSA Delta", "delta"),
    "deltaai": ("DeltaAI", "NCSA DeltaAI", "deltaai"),
    "anvil": ("Anvil", "Purdue Anvil", "anvil"),
}
_MODELS = {
    "bert": ("BERT", "bert"),
    "gpt": ("GPT", "gpt"),
    "resnet": ("ResNet", "resnet"),
    "unet": ("U-Net", "unet"),
    "vit": ("ViT", "vit"),
}
_WAYS = {
    "ddp": ("DDP", "ddp", "distributed data parallel"),
    "fsdp": ("FSDP", "fsdp", "fully sharded data parallel"),
    "tp": ("tensor parallelism", "tensor parallel", "TP"),
    "pp": ("pipeline parallelism", "pipeline parallel", "PP"),
    "3d": ("3D parallelism", "3d parallel"),
}
_COUNTS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NOISE = (
    "We finally have the tokenised corpus on disk.",
    "A colleague tried something like this on a desktop card last spring and gave up.",
    "The loss curve of the old model still looks odd to me.",
    "Our group meeting is on Thursday, so there is no hurry.",
    "The reviewers want to see error bars this time.",
    "Sorry for the long mail, I am new to this machine.",
    "The images are small and already cropped.",
    "Checkpoints can be thrown away afterwards.",
    "I have read the user guide twice and am still unsure.",
    "Please let me know if anything looks off.",
)
_OPENINGS = ("Hi there,", "Hello,", "Good morning!", "Dear all,")
_ENDINGS = ("Many thanks!", "Thanks in advance.", "Cheers", "Best wishes")


def phrase(drawn: Drawn, phrasing: str, seed: int) -> str:
    """A request in words, the same for the same seed."""
    rng = random.Random(f"{seed}/{drawn.site}/{drawn.family}/{drawn.paradigm}/{phrasing}")
    makers: dict[str, Callable[[Drawn, random.Random], str]] = {"terse": _terse, "plain": _plain, "verbose": _verbose}
    return makers[phrasing](drawn, rng)


def _time(minutes: int, rng: random.Random) -> str:
    hours, rest = divmod(minutes, 60)
    forms = [f"{hours:02d}:{rest:02d}:00", f"{minutes} minutes", f"{minutes} min"]
    if not rest:
        forms += [f"{hours} hour{'s' if hours > 1 else ''}", f"{hours}h"]
    if minutes == 30:
        forms.append("half an hour")
    if minutes > 300:
        forms = [form for form in forms if "min" not in form]
    return rng.choice(forms)


def _run(drawn: Drawn) -> str | None:
    return shlex.join([drawn.script, *drawn.args]) if drawn.script else None


def _shape(drawn: Drawn, rng: random.Random, *, words: bool = False) -> str:
    """Nodes, and devices where a part of a node is meant; now and then the total instead."""
    device = "tile" if drawn.site == "aurora" else "GPU"
    total = drawn.nodes * drawn.devices
    plural = "" if drawn.nodes == 1 else "s"
    count = _COUNTS[drawn.nodes] if words and drawn.nodes < len(_COUNTS) else str(drawn.nodes)
    if drawn.part_of_node:
        return f"{count} node with {drawn.devices} GPU{'' if drawn.devices == 1 else 's'}"
    pvc = drawn.site == "stampede3" and drawn.queue == "pvc"
    if drawn.nodes > 1 and drawn.devices > 1 and not pvc and rng.random() < 0.25:
        return f"{total} {device}s in total"
    if drawn.devices > 1 and not pvc and rng.random() < 0.3:
        return f"{count} node{plural} with {drawn.devices} {device}s{' each' if drawn.nodes > 1 else ''}"
    return f"{count} node{plural}"


def _degrees(drawn: Drawn) -> str:
    if not drawn.degrees:
        return ""
    names = {"tp": "tensor", "pp": "pipeline", "dp": "data"}
    return ", ".join(f"{names[key]} parallel {degree}" for key, degree in drawn.degrees.items())


def _queue_word(drawn: Drawn) -> str:
    return {"polaris": "queue", "aurora": "queue", "perlmutter": "qos"}.get(drawn.site, "partition")


def _terse(drawn: Drawn, rng: random.Random) -> str:
    parts = [
        f"{rng.choice(_MODELS[drawn.family])} {rng.choice(_WAYS[drawn.paradigm])}",
        rng.choice(_PLACES[drawn.site]),
        _shape(drawn, rng),
        _time(drawn.minutes, rng),
        f"{_queue_word(drawn)} {drawn.queue}",
    ]
    if drawn.account:
        parts.append(f"{rng.choice(('account', 'project'))} {drawn.account}")
    if drawn.degrees:
        parts.append(_degrees(drawn))
    if drawn.precision:
        parts.append(drawn.precision)
    if drawn.conda:
        parts.append(f"conda env {drawn.conda}")
    if run := _run(drawn):
        parts.append(f"script {run}")
    return ", ".join(parts)


def _plain(drawn: Drawn, rng: random.Random) -> str:
    model, way, place = (
        rng.choice(_MODELS[drawn.family]),
        rng.choice(_WAYS[drawn.paradigm]),
        rng.choice(_PLACES[drawn.site][:2]),
    )
    start = rng.choice(("Train", "Please train", "I want to train", "Launch a training of"))
    text = f"{start} a {model} model with {way} on {place}, using {_shape(drawn, rng, words=rng.random() < 0.5)}"
    text += f" for {_time(drawn.minutes, rng)} in the {drawn.queue} {_queue_word(drawn)}."
    if drawn.account:
        verb = rng.choice(("Charge it to", "Use the account", "Bill it to the project"))
        text += f" {verb} {drawn.account}."
    if drawn.degrees:
        text += f" The degrees are {_degrees(drawn)}."
    if drawn.precision:
        text += f" Use {drawn.precision} precision."
    if drawn.conda:
        text += f" My conda environment is called {drawn.conda}."
    if run := _run(drawn):
        text += f" The script is `{run}`."
    return text


def _verbose(drawn: Drawn, rng: random.Random) -> str:
    noise = rng.sample(_NOISE, 4)
    model, way = rng.choice(_MODELS[drawn.family]), rng.choice(_WAYS[drawn.paradigm])
    place = rng.choice(_PLACES[drawn.site][:2])
    needs = [
        f"What I would like is to train a {model} model, and it should use {way}.",
        f"The machine is {place}, and {_shape(drawn, rng, words=rng.random() < 0.5)} should be enough.",
        f"It has to fit into {_time(drawn.minutes, rng)};"
        f" I was told to submit to the {drawn.queue} {_queue_word(drawn)}.",
    ]
    if drawn.account:
        needs.append(f"Our allocation, and so the account to charge, is {drawn.account}.")
    if drawn.degrees:
        needs.append(f"We want {_degrees(drawn)}.")
    if drawn.precision:
        needs.append(f"Precision should be {drawn.precision}.")
    if drawn.conda:
        needs.append(f"Everything is installed in the conda environment {drawn.conda}.")
    if run := _run(drawn):
        needs.append(f"The program to start is `{run}`.")
    sentences = [rng.choice(_OPENINGS), noise[0], needs[0], noise[1], *needs[1:3], noise[2], *needs[3:], noise[3]]
    return " ".join([*sentences, rng.choice(_ENDINGS)])
