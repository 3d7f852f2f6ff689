"""Host lists on a launcher's command line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from maple_parsl.rules import parts
from maple_parsl.rules.base import Found, Rule, Subject

_HOST = re.compile(r"[\w.-]+:\d+\Z")


def _slots(subject: Subject) -> Iterator[Found]:
    for launch in subject.script.all_launches:
        horovod = launch.launcher == "horovodrun"
        if not horovod and not (launch.launcher in ("mpirun", "mpiexec") and launch.dialect == "openmpi"):
            continue
        option, wanted = launch.option("hosts"), parts.number(launch, "ntasks")
        text = option.value.text if option else None
        if option is None or not text or wanted is None or launch.option("oversubscribe"):
            continue
        spaced = [w for w in launch.program[:8] if _HOST.match(w.value.text or "")]
        if spaced and _HOST.match(launch.program[0].value.text or ""):
            yield Found(
                f"hosts behind {text} are separated by blanks, so {spaced[0].value.text} is taken for the program",
                spaced[0].place,
                fix="separate hosts by commas, without blanks",
            )
            continue
        total, bare = 0, []
        for piece in text.split(","):
            host, mark, count = piece.partition(":")
            if mark and not count.isdigit():
                return
            if mark and count == "0":
                yield Found(f"{host} has 0 slots", option.value_place)
            if not mark:
                bare.append(host)
            total += int(count) if mark else 1
        if not horovod and (
            parts.has_directives(subject) or launch.option("ntasks_per_node") or launch.option("map_by")
        ):
            continue
        if wanted > total:
            why = f" ({bare[0]} states no number, so it counts 1)" if bare else ""
            fix = f"{bare[0]}:{wanted}" if len(bare) == 1 and "," not in text else "give every host its slots"
            edits = parts.option_edit(subject, option, option.text.replace(bare[0], fix)) if ":" in fix else ()
            yield Found(
                f"{wanted} processes are wanted and the hosts have {total} slot{'s' if total > 1 else ''}{why}",
                option.value_place,
                fix=fix,
                edits=edits,
            )


RULES = (
    Rule(
        id="hosts-without-slots",
        fault_class="LAUNCHER_TASK_MISMATCH",
        severity="error",
        title="a host list with too few slots",
        why="A host without a number has one slot, and hosts are separated by commas: with fewer slots than processes"
        " the launcher stops with 'not enough slots'.",
        source="https://horovod.readthedocs.io/en/stable/running_include.html",
        fix="host:slots,host:slots with a sum of at least the number of processes.",
        bad="#!/bin/bash\nhorovodrun -np 2 -H localhost python train.py\n",
        good="#!/bin/bash\nhorovodrun -np 2 -H localhost:2 python train.py\n",
        check=_slots,
    ),
)
