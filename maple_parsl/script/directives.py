"""Scheduler directives: every ``#SBATCH``, ``#PBS``, ``#BSUB``, ``#COBALT`` and ``#$`` line, effective or not."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import islice

from maple_parsl.script import slurm_options as slurm
from maple_parsl.script.model import Directive, Place, Scheduler, Where
from maple_parsl.script.text import Lines

_MARKS: dict[str, Scheduler] = {"SBATCH": "slurm", "PBS": "pbs", "BSUB": "lsf", "COBALT": "cobalt"}
_LINE = re.compile(
    r"^(?P<blank>[ \t]*)(?P<hash>#[#\s]*)(?P<mark>SBATCH|PBS|BSUB|COBALT)(?P<rest>(?:[ \t]+|(?=-)|[\u00a0\u2007]).*)?$",
    re.I | re.M,
)
_SGE = re.compile(r"^#\$[ \t]+(-.*)$", re.M)
_HEREDOC = re.compile(r"(?<!<)<<(-?)[ \t]*(?:\\?([A-Za-z_]\w*)|'([^'\n]+)'|\"([^\"\n]+)\")")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)|\$[({]|`")
_RESOURCE = re.compile(r",(?=[A-Za-z_]\w*\s*=)")
_MOST_ON_A_LINE = 16

# What one asks for in any scheduler's words.
_COMMON: dict[str, dict[str, str]] = {
    "account": {"slurm": "--account", "pbs": "-A", "lsf": "-P", "cobalt": "-A"},
    "queue": {"slurm": "--partition", "pbs": "-q", "lsf": "-q", "cobalt": "-q"},
    "walltime": {"slurm": "--time", "pbs": "-l walltime", "lsf": "-W", "cobalt": "-t"},
    "name": {"slurm": "--job-name", "pbs": "-N", "lsf": "-J", "cobalt": "--jobname"},
    "output": {"slurm": "--output", "pbs": "-o", "lsf": "-o", "cobalt": "-o"},
    "error": {"slurm": "--error", "pbs": "-e", "lsf": "-e", "cobalt": "-e"},
    "nodes": {"slurm": "--nodes", "pbs": "-l select", "lsf": "-nnodes", "cobalt": "-n"},
}
_PBS_SWITCHES = frozenset("VhIXzfG")
_LSF_SWITCHES = frozenset("x B N K H r rn I Is Ip env0".split())
_COBALT_LONG = {"q": "--queue", "t": "--time", "n": "--nodecount", "A": "--project"}


def normal_name(name: str, scheduler: str) -> str:
    """How a directive's name is kept: ``-N`` and ``nodes`` become ``--nodes`` for Slurm."""
    if name in _COMMON and scheduler in _COMMON[name]:
        return _COMMON[name][scheduler]
    if scheduler == "slurm":
        bare = name.lstrip("-")
        if len(bare) == 1 and bare in slurm.SHORT:
            return "--" + slurm.SHORT[bare]
        return "--" + slurm.long_name(bare.replace("_", "-") if not slurm.known(bare) else bare)
    if scheduler == "pbs" and not name.startswith("-"):
        return f"-l {name}"
    return name if name.startswith("-") else "-" + name


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    column: int
    quoted: bool


def heredoc_lines(rows: list[str]) -> tuple[list[tuple[int, int]], list[Place]]:
    """First and last line (from 1) of every here-document's body, and the places of those without an end."""
    found: list[tuple[int, int]] = []
    open_at: list[Place] = []
    number = 0
    while number < len(rows):
        row = rows[number]
        number += 1
        if "<<" not in row or row.lstrip().startswith("#"):
            continue
        for match in islice(_HEREDOC.finditer(row), _MOST_ON_A_LINE):
            before = row[: match.start()]
            if before.count("((") > before.count("))") or before.count("'") % 2:
                continue
            end = match[2] or match[3] or match[4]
            start = number
            while number < len(rows) and (rows[number].lstrip("\t") if match[1] else rows[number]) != end:
                number += 1
            found.append((start + 1, number))
            if number >= len(rows):
                open_at.append(Place(start, match.start() + 1))
            number += 1
    return found, open_at


def scan(text: str, lines: Lines) -> tuple[Scheduler, tuple[Directive, ...], list[Place]]:
    """The script's scheduler, all directives in order, and where here-documents are left open."""
    rows = text.split("\n")
    documents, open_at = heredoc_lines(rows)
    inside = {n for first, last in documents for n in range(first, last + 1)} if len(rows) < 200_000 else set()
    first_command = next(
        (n for n, row in enumerate(rows, 1) if row.strip() and not row.lstrip().startswith("#")), len(rows) + 1
    )
    found: list[Directive] = []
    for match in _LINE.finditer(text):
        rest = match["rest"] or ""
        exact = match["hash"] == "#" and not match["blank"] and match["mark"].isupper()
        number = lines.at(len(text[: match.start()].encode()) if not lines.ascii else match.start()).line
        if not exact and not rest.strip().startswith(("-", "\u2013", "\u2014")):
            continue
        scheduler = _MARKS[match["mark"].upper()]
        state: Where = "effective"
        if number in inside:
            state = "in_heredoc"
        elif not exact:
            state = "commented"
        elif number > first_command and scheduler != "lsf":
            state = "too_late"
        offset = match.start("rest") - match.start() if match["rest"] else 0
        found.extend(_parse(scheduler, rest, offset, number, match[0], state))
    for match in _SGE.finditer(text):
        number = text.count("\n", 0, match.start()) + 1
        state = "in_heredoc" if number in inside else "effective"
        found.extend(_parse("sge", match[1], match.start(1) - match.start(), number, match[0], state))
    found.sort(key=lambda d: d.place)
    own = _own(found)
    return own, _linked(found, own), open_at


def _own(found: list[Directive]) -> Scheduler:
    counts: dict[Scheduler, int] = {}
    for states in (("effective",), ("too_late",)):
        for directive in found:
            if directive.state in states:
                counts[directive.scheduler] = counts.get(directive.scheduler, 0) + 1
        if counts:
            return max(counts, key=lambda name: counts[name])
    return "none"


def _linked(found: list[Directive], own: Scheduler) -> tuple[Directive, ...]:
    latest: dict[str, Place] = {}
    done = []
    for directive in found:
        if directive.scheduler != own and directive.state == "effective":
            directive = replace(directive, state="foreign")
        if directive.state == "effective":
            if directive.name in latest:
                directive = replace(directive, overrides=latest[directive.name])
            latest[directive.name] = directive.place
        done.append(directive)
    return tuple(done)


def _tokens(rest: str, offset: int) -> tuple[list[_Token], str | None]:
    """Words of a directive with quotes removed, and the comment behind them."""
    tokens: list[_Token] = []
    current, start, quote, quoted = "", -1, "", False
    for index, c in enumerate(rest):
        if quote:
            if c == quote:
                quote = ""
            else:
                current += c
            continue
        if c in "\"'":
            quote, quoted = c, True
            start = index if start < 0 else start
        elif c.isspace():
            if start >= 0:
                tokens.append(_Token(current, offset + start + 1, quoted))
            current, start, quoted = "", -1, False
        elif c == "#" and (start < 0 or rest[index - 1].isspace()):
            return tokens, rest[index:].rstrip()
        else:
            current += c
            start = index if start < 0 else start
    if start >= 0:
        tokens.append(_Token(current, offset + start + 1, quoted))
    return tokens, None


def _parse(scheduler: Scheduler, rest: str, offset: int, line: int, raw: str, state: Where) -> list[Directive]:
    tokens, comment = _tokens(rest, offset)
    items: list[tuple[str, str, str | None, _Token, _Token | None]] = []
    trailing: list[str] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        index += 1
        text = token.text
        if not text.startswith("-") or text in ("-", "--"):
            trailing.append(text)
            continue
        following = tokens[index] if index < len(tokens) else None
        name, value, used = _option(scheduler, text, following)
        index += used
        value_token = following if used else None
        if scheduler == "pbs" and name == "-l" and value is not None:
            for piece in _RESOURCE.split(value):
                key, _, content = piece.partition("=")
                items.append((f"-l {key.strip()}", text[:2], content.strip(), token, value_token))
        else:
            short = scheduler in ("slurm", "pbs", "cobalt") and not text.startswith("--")
            items.append((name, text[:2] if short else text.split("=")[0], value, token, value_token))
    if not items and (trailing or not tokens):
        items.append(("", "", None, _Token("", offset + 1, False), None))
    made = []
    for position, (name, flag, value, token, value_token) in enumerate(items):
        last = position == len(items) - 1
        variables = tuple(m[1] or m[0] for m in _VARIABLE.finditer(value or ""))
        column = value_token.column if value_token else token.column + len(flag) + (1 if "=" in token.text else 0)
        made.append(
            Directive(
                scheduler=scheduler,
                name=name,
                flag=flag,
                value=value,
                raw=raw,
                place=Place(line, token.column),
                state=state,
                variables=variables,
                comment=comment,
                trailing=tuple(trailing) if last else (),
                value_place=Place(line, column) if value is not None else None,
                quoted=(value_token or token).quoted,
            )
        )
    return made


def _option(scheduler: Scheduler, text: str, following: _Token | None) -> tuple[str, str | None, int]:
    """Normalised name, value, and how many further tokens it took."""
    next_value = following.text if following and not _is_option(following) else None
    if scheduler == "slurm" or (scheduler == "cobalt" and text.startswith("--")):
        if text.startswith("--"):
            bare, mark, value = text[2:].partition("=")
            name = slurm.long_name(bare) if scheduler == "slurm" else bare
            if mark:
                return "--" + name, value, 0
            if scheduler == "slurm" and name in slurm.SBATCH_SWITCHES:
                return "--" + name, None, 0
            return "--" + name, next_value, int(next_value is not None)
        letter, value = text[1:2], text[2:]
        name = "--" + slurm.SHORT.get(letter, letter)
        if value:
            return name, value.removeprefix("="), 0
        if name[2:] in slurm.SBATCH_SWITCHES:
            return name, None, 0
        return name, next_value, int(next_value is not None)
    if scheduler == "lsf" or scheduler == "sge":
        bare, mark, value = text.partition("=")
        if mark and scheduler == "lsf" and bare.startswith("--"):
            return bare, value, 0
        if text[1:] in _LSF_SWITCHES:
            return text, None, 0
        if scheduler == "sge" and text == "-pe" and next_value is not None:
            return text, next_value, 1
        return text, next_value, int(next_value is not None)
    letter, value = text[:2], text[2:]
    if value:
        return letter, value.removeprefix("="), 0
    if letter[1:] in _PBS_SWITCHES:
        return letter, None, 0
    return letter, next_value, int(next_value is not None)


def _is_option(token: _Token) -> bool:
    return not token.quoted and re.match(r"--?[A-Za-z]", token.text) is not None
