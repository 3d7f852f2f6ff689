"""Numbers and names of the old job in the program's words, as they are at the target."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from maple_parsl.errors import ComposeError
from maple_parsl.port import names

if TYPE_CHECKING:
    from maple_parsl.plan import Shape
    from maple_parsl.port.program import Program
    from maple_parsl.script.model import Script
    from maple_parsl.script.rankmap import LaunchRanks

_HINTS = (
    ("devices", re.compile(r"PER_?NODE|PPN|GPUS?\b|DEVICES|NPROC", re.I)),
    ("world", re.compile(r"WORLD|RANKS|NTOT|TOTAL|NTASKS|PROCS", re.I)),
    ("nodes", re.compile(r"NODES?|NHOSTS?", re.I)),
)


@dataclass(frozen=True)
class Translated:
    """The program's words at the target, and the assignments they need, each with what it was."""

    program: Program
    assignments: tuple[tuple[str, str], ...]
    said: tuple[str, ...]


def translate(program: Program, dropped: set[str], script: Script, main: LaunchRanks, shape: Shape) -> Translated:
    """Replace what the words say of the old job.

    Raises:
        ComposeError: the words depend on something of the old scheduler that has no counterpart.
    """
    now = {"nodes": shape.nodes, "world": shape.world_size, "devices": shape.devices}
    said: list[str] = []
    words = tuple(_word(word, now, said) for word in program.words)
    assignments: list[tuple[str, str]] = []
    problems = [
        f"the program is told {told[0]}, which only the old scheduler sets; change the program or its arguments"
        for word in words
        if (told := names.SCHEDULER.search(word))
    ]
    for name in sorted(program.names & dropped - {"MASTER_ADDR", "MASTER_PORT"}):
        number = None if name in names.LAUNCH - {"WORLD_SIZE"} else _number(name, script, main, now)
        if number is None:
            problems.append(
                f"the program is told ${name}, which was worked out for the old site; write its value in the script"
            )
        else:
            assignments.append((name, str(number)))
            said.append(f"{name} is {number} at the target")
    if problems:
        raise ComposeError(list(dict.fromkeys(problems)))
    return Translated(replace(program, words=words), tuple(assignments), tuple(said))


def _word(word: str, now: Mapping[str, int], said: list[str]) -> str:
    made = names.JOB_ID.sub("$MAPLE_JOB_ID", word)
    for name, what in names.COUNTS.items():
        made = re.sub(rf"\$\{{{name}\}}|\${name}\b", str(now[what]), made)
    if made != word:
        said.append(f"{word} became {made}")
    return made


def _number(name: str, script: Script, main: LaunchRanks, now: Mapping[str, int]) -> int | None:
    """What a count of the old job is at the target: by its value where that is enough, else by its name."""
    held = script.variables.get(name)
    old = held.value.number if held is not None else None
    symbol = held.value.symbol if held is not None else None
    if symbol is not None and symbol.kind == "node_count" and not symbol.derived:
        return now["nodes"]
    before = {"nodes": main.nodes, "world": main.processes, "devices": main.per_node}
    fits = [what for what, count in before.items() if count is not None and count == old]
    if len(fits) != 1:
        fits = [what for what, hint in _HINTS if hint.search(name) and (what in fits or old is None)][:1]
    return now[fits[0]] if fits else None
