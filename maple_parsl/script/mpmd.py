"""Several programs in one launch: ``mpiexec -n 1 python server.py : -n 7 python worker.py``."""

from __future__ import annotations

from dataclasses import replace

from maple_parsl.script import options
from maple_parsl.script.model import Arg, Context, Option
from maple_parsl.script.values import const, unknown


def joined(
    grammar: options.Grammar, parsed: tuple[Option, ...], program: tuple[Arg, ...], context: Context
) -> tuple[tuple[Option, ...], tuple[Arg, ...]]:
    """The first program, and options whose number of processes is that of all parts; unknown where a part says none."""
    texts = [word.value.text for word in program]
    if ":" not in texts:
        return parsed, program
    first = texts.index(":")
    counts = [_count(parsed)]
    rest = program[first + 1 :]
    while rest:
        part, used = options.parse(grammar, rest, context)
        counts.append(_count(part))
        colon = next((i for i, word in enumerate(rest[used:], used) if word.value.text == ":"), len(rest))
        rest = rest[colon + 1 :]
    known = [count for count in counts if count is not None]
    total = const(sum(known)) if len(known) == len(counts) else unknown("parts of the launch")
    return tuple(replace(o, value=total) if o.name == "ntasks" else o for o in parsed), program[:first]


def _count(parsed: tuple[Option, ...]) -> int | None:
    return next((o.value.number for o in reversed(parsed) if o.name == "ntasks"), None)
