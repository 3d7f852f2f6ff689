"""Text that is safe on a terminal, and how wide it is there."""

from __future__ import annotations

import re
from unicodedata import combining, east_asian_width

# Escape sequences first, then every other control, and what reverses or hides text.
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_].*?(?:\x07|\x1b\\|$)|[ -/]*[0-~])", re.S)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_UNSHOWN = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def clean(text: str) -> str:
    """The text without anything that could drive the terminal; line breaks and tabs stay."""
    return _CONTROL.sub("", _SEQUENCE.sub("", text.replace("\r\n", "\n")))


def shown(text: str) -> str:
    """One line with every control and invisible character replaced by one visible one, so that columns stay."""
    return _UNSHOWN.sub("\N{REPLACEMENT CHARACTER}", text)


def width(text: str) -> int:
    """Columns the text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)
