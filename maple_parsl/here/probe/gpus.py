"""What a GPU's model says of its maker."""

from __future__ import annotations

import re
from typing import Literal

Vendor = Literal["nvidia", "amd", "intel"]
# Names of products as schedulers write them; anything else stays unknown.
_MODELS: tuple[tuple[Vendor, str], ...] = (
    ("nvidia", r"p100|v100s?|t4|l4|l40s?|a2|a10g?|a16|a30|a40|a100|a800|h100|h200|h20|gh200|b100|b200|gb200|gb300"),
    ("nvidia", r"rtx\w*|gtx\w*|titan\w*|quadro\w*|tesla\w*|geforce\w*|nvidia\w*|k80|m40"),
    ("amd", r"mi\d{2,3}[axp]?|instinct\w*|radeon\w*"),
    ("intel", r"pvc|ponte_?vecchio|max_?1[015]50|data_?center_?gpu_?max\w*"),
)
TORCH = {"nvidia": ("nccl", "cuda"), "amd": ("nccl", "cuda"), "intel": ("xccl", "xpu")}
"""Collective backend and torch device of each maker's GPUs, as PyTorch documents them."""


def vendor_of(model: str) -> Vendor | None:
    """Who makes a GPU of that name, such as ``a100`` or ``nvidia_h100_80gb``; None where the name does not tell."""
    words = [word for word in re.split(r"[-_. :]+", model.lower()) if word]
    for vendor, pattern in _MODELS:
        if any(re.fullmatch(pattern, word) for word in (*words, "_".join(words))):
            return vendor
    return None
