"""Configuration files that launchers read: accelerate's YAML and host files, as far as they are at hand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from maple_parsl.script.model import Option
from maple_parsl.script.values import Symbol, Value

if TYPE_CHECKING:
    from maple_parsl.script.walk import Walker

_ROW = re.compile(r"^(\s*)([A-Za-z_][\w.-]*)\s*:\s*(.*?)\s*$")
_MOST = 400


def of(walker: Walker, launcher: str, options: tuple[Option, ...]) -> tuple[Mapping[str, str], bool | None]:
    """Settings from a launcher's file, and whether it was found (None: it names none)."""
    wanted = {"accelerate": "config_file", "deepspeed": "hostfile", "horovodrun": "hostfile"}.get(launcher)
    path = next((o.value for o in reversed(options) if o.name == wanted), None)
    if path is None:
        return {}, None
    text = _text(walker, path)
    if text is None:
        return {}, False
    return (yaml(text) if launcher == "accelerate" else hosts(text)), True


def _text(walker: Walker, path: Value) -> str | None:
    written = walker.written(path)
    if written is not None:
        return "".join(str(p) if isinstance(p, Symbol) else p for p, _, _ in written.parts)
    read = walker.read_file(path)
    return read[1] if read is not None else None


def yaml(text: str) -> dict[str, str]:
    """The scalars of a simple YAML mapping; nested keys joined with a dot."""
    found: dict[str, str] = {}
    path: list[tuple[int, str]] = []
    for row in text.split("\n")[:_MOST]:
        bare = re.sub(r"\s+#.*", "", row)
        match = _ROW.match(bare)
        if not match or bare.lstrip().startswith("#"):
            continue
        depth = len(match[1])
        while path and path[-1][0] >= depth:
            path.pop()
        key = ".".join([*(name for _, name in path), match[2]])
        value = match[3].strip("\"'")
        if match[3]:
            found[key] = value
        else:
            path.append((depth, match[2]))
    return found


def hosts(text: str) -> dict[str, str]:
    """``host slots=N`` lines -> host to slots."""
    found: dict[str, str] = {}
    for row in text.split("\n")[:100_000]:
        words = row.split("#")[0].split()
        if words:
            slots = next((w.partition("=")[2] for w in words[1:] if w.startswith("slots=")), "")
            found[words[0]] = slots
    return found
