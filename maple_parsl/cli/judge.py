"""``maple judge``: what a script would really start, and whether that is what was asked for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def command(
    script: Annotated[Path, typer.Argument(help="The launch script.")],
    case: Annotated[Path, typer.Option(help="What was asked for, as JSON; docs/judge.md describes it.")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object, with everything that happened.")] = False,
) -> int:
    """Run a script in a pretended cluster, contained, and compare what it starts with a case.

    Exit code 0: as asked for. 1: it is not; every fault is printed. 6: scripts cannot be contained here.
    """
    from maple_parsl.cli.output import clean, emit_json
    from maple_parsl.errors import RequestError
    from maple_parsl.judge.judging import Sandbox, judge, read_case

    wanted = read_case(case)
    try:
        text = script.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise RequestError(f"{script}: {(error.strerror or str(error)).lower()}") from None
    with Sandbox() as sandbox:
        verdict = judge(text, wanted, sandbox, record=json)
    if json:
        emit_json({**verdict.model_dump(mode="json"), "good": verdict.good})
    else:
        for fault in verdict.faults:
            sys.stdout.write(f"{fault.kind}: {clean(fault.message)}\n")
        processes = f"{verdict.processes} processes of {clean(wanted.program.script)}"
        sys.stdout.write(f"good: {processes}\n" if verdict.good else f"not as asked for: {processes}\n")
    return 0 if verdict.good else 1
