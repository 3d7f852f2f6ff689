"""Text from outside that could run as a command."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.rules.asking import row, texts
from maple_parsl.rules.base import Family, Found, Subject
from maple_parsl.script.model import Arg

_ALL = re.compile(r"\$[*@]")
_SHELLS = frozenset("bash sh zsh dash ksh python python3 perl".split())
_OUTSIDE = ("positional", "environment", "unset")
_PIPED = re.compile(r"\b(?:curl|wget)\b[^|;&#]*\|\s*(?:sudo\s+)?(?:\S*/)?(?:bash|sh|zsh|python3?|perl)\b")
_PROCESS = re.compile(r"(?:\b(?:bash|sh|source|eval)\b(?:\s+-c)?|\.\s)\s*[\"']?[<$]\(\s*(?:curl|wget)\b")
# Set by the scheduler or the system, not by who calls the script.
_TRUSTED = re.compile(
    r"(?:SLURM|PBS|LSB|PMI|OMPI|CUDA|PALS|COBALT)_|(?:HOME|USER|PWD|TMPDIR|SCRATCH|HOSTNAME|PATH|SHELL)\Z"
)
_KNOWN_EVALS = re.compile(r"\b(?:hook|ssh-agent|shellenv|getopt|direnv|brew|lmod|modulecmd)\b")


def _outside(word: Arg) -> str | None:
    """The name of something the caller decides, in a word."""
    for symbol in word.value.symbols:
        if symbol.kind == "positional":
            return f"${symbol.detail}" if symbol.detail else "an argument"
        if symbol.kind in ("environment", "unset") and symbol.detail and not _TRUSTED.match(symbol.detail):
            return f"${symbol.detail}"
    return None


def _download(subject: Subject) -> Iterator[Found]:
    for number, text in enumerate(subject.lines, 1):
        if text.lstrip().startswith("#") or len(text) > 4000:
            continue
        match = _PIPED.search(text) or _PROCESS.search(text)
        if match:
            from maple_parsl.script.model import Place

            yield Found("what is downloaded runs at once, unseen", Place(number, match.start() + 1))


def _evaluated(subject: Subject) -> Iterator[Found]:
    for command in subject.script.commands:
        if command.name != "eval":
            continue
        line = row(subject, command.place)
        if _KNOWN_EVALS.search(line):
            continue
        name = next((n for w in command.words[1:] if (n := _outside(w))), None)
        if name:
            yield Found(f"eval runs whatever {name} holds", command.place)


def _in_shell(subject: Subject) -> Iterator[Found]:
    seen = set()
    for command in subject.script.commands:
        words = texts(command)
        for index, word in enumerate(command.words[:-1]):
            name = (word.value.text or "").rpartition("/")[2]
            flag = words[index + 1]
            if name not in _SHELLS or not re.match(r"-\w*c\Z", flag) or index + 2 >= len(command.words):
                continue
            body = command.words[index + 2]
            outside = _outside(body) if '"' in body.text[:2] or '"' in body.quote else None
            if not outside and '"' in body.quote and (match := _ALL.search(body.text)):
                unknown = body.value.text == body.text.strip('"').replace(match[0], "")  # else a function's arguments
                outside = match[0] if unknown else None
            whole = body.value.symbol is not None  # the whole command is handed over, on purpose
            if (
                outside
                and not whole
                and outside.startswith("$")
                and body.place not in seen
                and (outside[1:2].isdigit() or outside[1:2] in ("@", "*"))
            ):
                seen.add(body.place)
                yield Found(
                    f"{outside} becomes part of the text that {name} {flag} reads: quotes, blanks and $(…) in it are code",
                    body.place,
                )


_S = "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --time=00:10:00\n"
_CWE = "https://cwe.mitre.org/data/definitions/78.html"


_FAMILY = Family("INJECTION", source=_CWE)


RULES = (
    _FAMILY.rule(
        "download-run-unseen",
        "warning",
        "a download is run at once",
        "Whoever controls the address, or the way to it, runs commands as you; a broken download runs by half.",
        "Download, check, then run.",
        _S + "curl -s https://example.org/setup.sh | bash\n",
        _S + "bash setup.sh\n",
        _download,
        source="https://cwe.mitre.org/data/definitions/494.html",
    ),
    _FAMILY.rule(
        "eval-of-outside",
        "warning",
        "eval of a value from outside",
        "The text is read as shell code once more.",
        'Run it as an array: "${command[@]}".',
        _S + 'eval "$COMMAND_FROM_USER"\n',
        _S + 'eval "$(conda shell.bash hook)"\n',
        _evaluated,
    ),
    _FAMILY.rule(
        "argument-in-shell-text",
        "warning",
        "an argument pasted into shell text",
        "In double quotes the argument is put into the text before the inner shell reads it.",
        'Pass it as an argument: bash -c \'python t.py "$1"\' _ "$1".',
        _S + 'srun bash -c "python t.py $1"\n',
        _S + 'srun bash -c \'python t.py "$1"\' _ "$1"\n',
        _in_shell,
    ),
)
