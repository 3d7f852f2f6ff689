"""A scheduler's directive is read by the scheduler, not by a shell: what one line of it may hold."""

from __future__ import annotations

import re
import shlex


def fault(option: str) -> str | None:
    """Why the scheduler would read something else than one option with its value; None when it would not."""
    if not option.startswith("-"):
        return f"{option!r} must be an option such as --constraint=scratch or -l place=x"
    if not option.isprintable():
        return f"{option!r} is not one line of printable text"
    try:
        words = shlex.split(option)
    except ValueError as error:
        return f"{option!r} is not whole ({str(error).lower()})"
    if shlex.split(option, comments=True) != words:
        return f"{option!r}: what follows # would be a comment; put the value in double quotes"
    options = [word for word in words if re.match(r"-[A-Za-z-]", word)]
    if len(options) > 1:
        return f"{option!r} holds several options; state each by itself, or put the value in double quotes"
    if len(words) > (1 if "=" in words[0] or (len(words[0]) > 2 and words[0][1] != "-") else 2):
        return f'{option!r}: {words[-1]!r} stands alone; put a value with blanks in double quotes, as --comment="a b"'
    return None


def time_stated(option: str) -> str | None:
    """The time limit that a directive sets, as it says it."""
    found = re.match(r"(?:--time[= ]|-t[= ]?)\s*(\S+)", option) or re.match(r"-l.*\bwalltime=([^,\s]+)", option)
    return found[1] if found else None


def count_stated(option: str) -> str | None:
    """How many nodes, or chunks, a directive asks for, as it says it."""
    if found := re.match(r"(?:--nodes[= ]|-N[= ]?)\s*(\S+)", option):
        return found[1]
    if found := re.match(r"-l\s*select=(\S+)", option):
        parts = [re.match(r"(\d+)(?=:|,|$)", part) for part in found[1].split("+")]
        return str(sum(int(part[1]) if part else 1 for part in parts))
    return None
