"""What a scheduler reads in a script: its options, the nodes and devices they ask for."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field

_SLURM_SHORT = {
    "A": "account",
    "p": "partition",
    "q": "qos",
    "t": "time",
    "N": "nodes",
    "n": "ntasks",
    "c": "cpus-per-task",
    "C": "constraint",
    "J": "job-name",
    "o": "output",
    "e": "error",
    "G": "gpus",
    "w": "nodelist",
    "x": "exclude",
    "D": "chdir",
    "d": "dependency",
    "a": "array",
    "M": "clusters",
    "L": "licenses",
    "m": "distribution",
    "i": "input",
    "H": "hold",
}
_SLURM_LONG = {
    *_SLURM_SHORT.values(),
    *(
        "ntasks-per-node gpus-per-node gpus-per-task gpus-per-socket gres mem mem-per-cpu mem-per-gpu exclusive export"
        " signal requeue no-requeue open-mode mail-type mail-user reservation gpu-bind cpu-bind comment time-min"
        " cpus-per-gpu ntasks-per-gpu ntasks-per-socket threads-per-core hint network image module volume begin"
        " tmp switches get-user-env oversubscribe overcommit use-min-nodes parsable kill-on-invalid-dep nice"
        " sockets-per-node cores-per-socket wait-all-nodes container perf"
    ).split(),
}
_NO_VALUE = {"exclusive", "requeue", "no-requeue", "hold", "oversubscribe", "overcommit", "parsable", "use-min-nodes"}
_PBS_PLAIN = {"V", "h", "I", "X", "z", "f"}
_PBS_VALUE = set("AaCcejJklmMNopPqrSuvW")


@dataclass
class Submission:
    """What the directives say.

    Attributes:
        options: by canonical name, the last value counts. faults: what the scheduler would refuse or not see.
        seconds: walltime. gpus: devices per node that were asked for, None where none was. slots: processes per
            node the scheduler was told of.
    """

    scheduler: str
    options: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    shebang: str = ""

    def get(self, name: str) -> str | None:
        return self.options.get(name)

    def number(self, name: str) -> int | None:
        value = self.options.get(name, "")
        return int(value) if value.isdecimal() else None

    @property
    def nodes(self) -> int | None:
        if self.scheduler == "pbs":
            chunks = self.options.get("select", "")
            found = re.match(r"(\d+)", chunks)
            return int(found[1]) if found else None
        found = re.fullmatch(r"(\d+)(?:-(\d+))?", self.options.get("nodes", ""))
        return int(found[2] or found[1]) if found else None

    @property
    def seconds(self) -> int | None:
        text = self.options.get("walltime" if self.scheduler == "pbs" else "time")
        return None if text is None else (pbs_seconds(text) if self.scheduler == "pbs" else slurm_seconds(text))

    @property
    def slots(self) -> int | None:
        if self.scheduler == "pbs":
            found = re.search(r":mpiprocs=(\d+)", self.options.get("select", ""))
            return int(found[1]) if found else None
        per_node, total, nodes = self.number("ntasks-per-node"), self.number("ntasks"), self.nodes or 1
        return per_node if per_node is not None else (-(-total // nodes) if total else None)

    @property
    def gpus(self) -> int | None:
        def last(text: str | None) -> int | None:
            found = re.search(r"(\d+)$", text or "")
            return int(found[1]) if found else None

        if (per_node := last(self.get("gpus-per-node"))) is not None:
            return per_node
        gres = re.search(r"gpu(?::[A-Za-z0-9_.]+)?:(\d+)|gpu$", self.get("gres") or "")
        if gres:
            return int(gres[1] or 1)
        if (total := last(self.get("gpus"))) is not None:
            return total // (self.nodes or 1)
        if (each := last(self.get("gpus-per-task"))) is not None:
            return each * (self.slots or 1)
        return None


def slurm_seconds(text: str) -> int | None:
    """``minutes``, ``min:sec``, ``h:m:s``, ``d-h``, ``d-h:m``, ``d-h:m:s``."""
    found = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", text)
    if not found:
        return None
    days, one, two, three = (int(part) if part else 0 for part in found.groups())
    if found[1]:
        return days * 86400 + one * 3600 + two * 60 + three
    if found[4]:
        return one * 3600 + two * 60 + three
    return one * 60 + two


def pbs_seconds(text: str) -> int | None:
    """``seconds``, ``min:sec``, ``h:m:s``."""
    if not re.fullmatch(r"\d+(:\d+){0,2}", text):
        return None
    total = 0
    for part in text.split(":"):
        total = total * 60 + int(part)
    return total


def read(text: str, scheduler: str) -> Submission:
    """The directives a scheduler would see: those above the first command."""
    found = Submission(scheduler)
    lines = text.split("\n")
    found.shebang = lines[0] if lines and lines[0].startswith("#!") else ""
    mark = "#SBATCH" if scheduler == "slurm" else "#PBS"
    for line in lines:
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            break
        if not line.startswith(mark) or not line[len(mark) :][:1].isspace():
            continue
        try:
            words = shlex.split(line[len(mark) :], comments=True)
        except ValueError as error:
            found.faults.append(f"{line!r} cannot be read: {error}")
            continue
        (_slurm if scheduler == "slurm" else _pbs)(words, found)
    return found


def _slurm(words: list[str], found: Submission) -> None:
    while words:
        word = words.pop(0)
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
        elif word.startswith("-") and len(word) > 1 and word[1] in _SLURM_SHORT:
            name, equals, value = _SLURM_SHORT[word[1]], word[2:], word[2:].removeprefix("=")
        else:
            found.faults.append(f"sbatch does not know {word!r}")
            return
        if name not in _SLURM_LONG:
            found.faults.append(f"sbatch: unrecognized option --{name}")
            return
        if not equals and name not in _NO_VALUE:
            if not words:
                found.faults.append(f"sbatch: --{name} needs a value")
                return
            value = words.pop(0)
        found.options[name] = value


def _pbs(words: list[str], found: Submission) -> None:
    while words:
        word = words.pop(0)
        letter = word[1:2]
        if word.startswith("-") and letter in _PBS_PLAIN:
            found.options[f"-{letter}"] = ""
        elif word.startswith("-") and letter in _PBS_VALUE:
            value = word[2:] or (words.pop(0) if words else "")
            if not value:
                found.faults.append(f"qsub: -{letter} needs a value")
            elif letter == "l":
                _resources(value, found)
            else:
                found.options[f"-{letter}"] = value
        else:
            found.faults.append(f"qsub does not know {word!r}")


def _resources(value: str, found: Submission) -> None:
    if value.startswith("select="):
        found.options["select"] = value.removeprefix("select=")
        return
    for item in value.split(","):
        name, equals, text = item.partition("=")
        if not equals:
            found.faults.append(f"qsub: resource {item!r} has no value")
        found.options[name] = text
