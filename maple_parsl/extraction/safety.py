"""Text that would run as a command if it reached a shell: it is refused, whatever else the request says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from maple_parsl.extraction.reading import Issue

_COMMANDS = (
    r"(?:rm|curl|wget|nc|ncat|sudo|reboot|shutdown|halt|poweroff|mkfs\S*|dd|chmod|chown|killall|kill|eval|exec|scp|ssh|"
    r"cat|touch|echo|sh|bash|zsh|python3?|perl|ruby|base64|crontab|useradd|mv|cp|tee|xargs|env|printenv|id|whoami)"
)
_SIGNS = re.compile(
    r"(?P<substitution>\$\([^)\n]{0,200}\)?|<\([^)\n]{0,200}\))"
    r"|(?P<chain>&&|\|\|)"
    rf"|(?P<pipe>\|\s*(?:sudo\s+)?{_COMMANDS}\b)"
    rf"|(?P<next>[\w.\"')/];\s*(?:rm|curl|wget|nc|sudo|reboot|shutdown|halt|mkfs|dd|chmod|killall|eval|exec)\b)"
    rf"|(?P<command>[\w.\"')/];\s*{_COMMANDS}\s+(?:-\w|/|~|\.|\$|[\w.]+/))"
    r"|(?P<glued>=[\w./@+-]{1,80}[;&|](?=\w))"
    r"|(?P<redirect>>{1,2}\s*(?:/(?:etc|dev|bin|usr|root|home|var|proc)\b|~/\.)|<\s*/etc/)"
    r"|(?P<destroy>\brm\s+-[a-z]*[rf][a-z]*\s+\S|\bsudo\s+\w|:\(\)\s*\{)"
    r"|(?P<directive>\\n\s*#(?:SBATCH|PBS|BSUB|FLUX|COBALT)\b)"
    r"|(?P<backticks>`[^`\n]{0,300}[;|&$<>][^`\n]{0,300}`|`\s*(?:rm|curl|wget|cat|whoami|id|reboot|sudo|env|ls)\b[^`\n]{0,300}`)",
    re.I,
)
# A line break inside a quoted value that starts a directive: the value would add it to the script.
_QUOTED_DIRECTIVE = re.compile(
    r"[\"'][^\"'\n]{0,200}\r?[\n\u2028\u2029\u0085][^\"']{0,200}?#\s?(?:SBATCH|PBS|BSUB|FLUX)\b[^\"']{0,300}[\"']", re.I
)
_PRELUDE = re.compile(r"(?:cd|module load|ml|source|conda activate|mamba activate|\.)\s+[\w./~$ -]{1,120}$", re.I)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_FIELD = re.compile(r"[;&|`<>\n\r\u2028\u2029\u0085\x00]|\$\(|\$\{|\\n")


def injection(text: str) -> Issue | None:
    """The first piece of a request that is a shell command, or a directive smuggled into a value."""
    if match := _QUOTED_DIRECTIVE.search(text):
        return _issue(
            "a line break in this value would add a directive to the script", match.group(), match.start(), match.end()
        )
    for match in _SIGNS.finditer(text):
        if match.lastgroup == "chain" and _PRELUDE.search(text[: match.start()].rstrip()):
            continue
        return _issue("this is shell, and nothing in a request is run", match.group(), match.start(), match.end())
    if match := _CONTROL.search(text):
        return _issue("this has a control character", repr(match.group()), match.start(), match.end())
    return None


def field_injection(fields: Mapping[str, Any], text: str) -> Issue | None:
    """The same in a field of a structured request."""
    for name, value in fields.items():
        values = value if isinstance(value, list | tuple) else [value]
        for each in values:
            if isinstance(each, str) and name != "args" and (match := _FIELD.search(each)):
                at = max(0, text.find(each[:20]))
                return _issue(f"{name} holds {match.group()!r}, which a shell would act on", each, at, at + len(each))
            if isinstance(each, str) and (found := injection(each)):
                return found
    return None


def _issue(why: str, piece: str, start: int, end: int) -> Issue:
    shown = piece if len(piece) <= 60 else piece[:57] + "..."
    return Issue(
        "INJECTION",
        f"{why}: {shown!r}",
        "name the script and its arguments; set-up commands go into --setup",
        start,
        end,
    )
