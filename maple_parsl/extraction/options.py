"""Options of schedulers and launchers pasted into a request: ``-N 2 -t 1h``, ``#SBATCH``, ``#PBS -l select=2``."""

from __future__ import annotations

import re

from maple_parsl.extraction.clock import seconds_of_clock, seconds_of_span
from maple_parsl.extraction.sentence import Found, Sentence

_FIELDS = {
    "nodes": "nodes", "N": "nodes", "nnodes": "nodes", "num-nodes": "nodes", "num-machines": "nodes",
    "node-count": "nodes",
    "gpus-per-node": "gpus", "ntasks-per-node": "tasks", "nproc-per-node": "gpus", "ppn": "gpus", "num-gpus": "gpus",
    "tasks-per-node": "tasks", "gpus-per-task": "", "gres": "gres", "gpus": "gpus_total", "G": "gpus_total",
    "num-processes": "gpus_total", "num-gpus-per-node": "gpus",
    "time": "walltime", "t": "walltime", "walltime": "walltime", "W": "walltime",
    "account": "account", "A": "account", "project": "account", "P": "account",
    "partition": "queue", "p": "queue", "queue": "queue", "q": "queue", "qos": "queue",
    "job-name": "name", "J": "name", "site": "site", "model": "model", "paradigm": "paradigm", "precision": "precision",
    "master-port": "port", "main-process-port": "port", "script": "script", "conda": "conda", "venv": "venv",
    "tp": "tp", "pp": "pp", "dp": "dp", "tensor-model-parallel-size": "tp", "pipeline-model-parallel-size": "pp",
}  # fmt: skip
_SELECT = re.compile(r"select=(\d+)((?::[\w.-]+=?[\w.-]*)*)")
_WORD = re.compile(r"\s*=?\s*(\"[^\"\n]*\"|'[^'\n]*'|[^\s\"',;]+)")
_SLURM = re.compile(r"^[ \t>]*#SBATCH\b|\b(?:sbatch|srun|salloc)\s+-", re.M)
_LINE = re.compile(r"^[ \t>]*#(SBATCH|PBS|BSUB)[ \t]+(.*)$", re.M)


def options(sentence: Sentence, known_sites: frozenset[str]) -> list[Found]:
    """Values stated as options that are not the program's arguments."""
    made: list[Found] = []
    for at, item in enumerate(sentence.items):
        if sentence.letter(at) != "-":
            continue
        name = item.text.lstrip("-").replace("_", "-")
        name = name if len(name) == 1 else name.lower()
        word = _WORD.match(sentence.text, item.end)
        value = word[1].strip("\"'").rstrip(".,") if word else ""
        if name == "l" and word:
            made += _resources(sentence, at, word)
            continue
        if item.text in ("-P", "-p", "-q") and value.isdecimal() and len(value) < 3:
            continue
        field = _FIELDS.get(name)
        if not field or not value or value.startswith("-"):
            continue
        if name == "p" and sentence.low(at - 1) in ("-m", "mkdir"):
            continue
        last = _last(sentence, word.end() if word else item.end)
        made += _typed(sentence, field, value, at, last, known_sites)
        sentence.claim(at, last)
    return made


def has_directives(text: str) -> bool:
    """Whether the text has lines with ``#SBATCH`` or ``#PBS``."""
    return bool(_LINE.search(text))


def _typed(sentence: Sentence, field: str, value: str, at: int, last: int, known: frozenset[str]) -> list[Found]:
    if field in ("nodes", "gpus", "gpus_total", "tasks", "port", "tp", "pp", "dp"):
        if re.fullmatch(r"-?\d+(\.\d+)?", value):
            number = float(value)
            count = int(number) if number == int(number) and "." not in value else number
            return [sentence.found("gpus" if field == "tasks" and count != 1 else field, count, at, last)]
        if field == "gpus" and (match := re.fullmatch(r"(?:[\w-]+:)?(\d+)", value)):
            return [sentence.found("gpus", int(match[1]), at, last)]
        return []
    if field == "gres":
        match = re.fullmatch(r"gpu(?::[\w.-]+)?:(\d+)", value)
        return [sentence.found("gpus", int(match[1]), at, last)] if match else []
    if field == "walltime":
        seconds = time_of(value)
        if seconds is None and value.isdecimal() and _SLURM.search(sentence.text):
            seconds = float(value) * 60  # sbatch(1), srun(1): a number alone is minutes
        return [sentence.found("walltime", seconds, at, last)]
    if field == "site":
        return [
            sentence.found(
                "site" if value.lower() in known else "site_unknown",
                value.lower() if value.lower() in known else value,
                at,
                last,
            )
        ]
    return [sentence.found(field, value, at, last)]


def time_of(value: str) -> float | None:
    """Seconds of a time as an option writes it; None where its unit is anyone's guess."""
    if re.fullmatch(r"-?(?:\d+-)?\d+(?::\d{1,2}){1,2}", value):
        return seconds_of_clock(value)
    low = value.lower()
    if re.fullmatch(r"(?:\d+(?:\.\d+)?(?:d|h|m|s|min|mins|hr|hrs|hours?|days?|minutes?))+", low):
        return seconds_of_span(low)
    return None


def _resources(sentence: Sentence, at: int, word: re.Match[str]) -> list[Found]:
    """``-l select=2:ngpus=4:system=polaris,walltime=01:00:00``."""
    end = word.end()
    while sentence.text[end : end + 1] == "," and (more := re.compile(r",[^\s,;\"']+").match(sentence.text, end)):
        end = more.end()
    value, last, made = sentence.text[word.start(1) : end], _last(sentence, end), []
    if match := _SELECT.search(value):
        made.append(sentence.found("nodes", int(match[1]), at, last))
        chunk = dict(part.partition("=")[::2] for part in match[2].split(":") if "=" in part)
        if chunk.get("ngpus", "").isdecimal():
            made.append(sentence.found("gpus", int(chunk["ngpus"]), at, last))
        if "system" in chunk:
            made.append(sentence.found("site", chunk["system"].lower(), at, last))
    if match := re.search(r"walltime=([\d:-]+)", value):
        made.append(sentence.found("walltime", seconds_of_clock(match[1]) if ":" in match[1] else None, at, last))
    sentence.claim(at, last)
    return made


def _last(sentence: Sentence, end: int) -> int:
    return max(k for k, item in enumerate(sentence.items) if item.start < end)
