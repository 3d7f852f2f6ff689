"""Names of models: ``bert-large``, ``llama2-7b``, ``ViT-B/16``; a family, and what makes it one of the family."""

from __future__ import annotations

import re
from functools import cache

from maple_parsl.extraction.typos import near
from maple_parsl.extraction.vocabulary import Vocabulary, plain

_PIECE = re.compile(r"v?\d[\w.]*|[a-z]{1,2}\d*|moe|lm|neox|hf|chat|instruct|it|rc\d|dev|mini|mae|[a-z]\d[\w.]*")
# Families that are words of their own: a size or version must follow.
_WORDS = frozenset({"opt", "phi", "mae", "dit", "palm", "flux", "orca", "arctic", "allegro", "granite", "mpt", "bart",
                    "dolly", "electra", "inception", "zephyr", "moe", "mace", "sam"})  # fmt: skip


_AFTER = frozenset("training train run model modell style based like finetuning pretraining job".split())


@cache
def _families(families: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("(" + "|".join(re.escape(family) for family in families) + r")(?=$|[\s\d]|v\d)")


def model_name(text: str, vocabulary: Vocabulary) -> tuple[str, float] | None:
    """The model that a word names, and how sure that is; None where it names none."""
    low = plain(text)
    match = _families(vocabulary.families).match(low)
    if match is None:
        return None
    rest = low[match.end() :].split()
    if not rest and low in _WORDS:
        return None
    name, sure = text, 1.0
    if len(rest) == 1 and rest[0] in _AFTER:
        return text[: -len(rest[0]) - 1], sure
    for piece in rest:
        if piece in vocabulary.variants or _PIECE.fullmatch(piece):
            continue
        variant = near(piece, vocabulary.variants)
        if variant is None or len(piece) < 4:
            return None
        at = name.lower().rfind(piece)
        name, sure = name[:at] + variant + name[at + len(piece) :], 0.8
    return name, sure
