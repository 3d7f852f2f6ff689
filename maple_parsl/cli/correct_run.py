"""``maple correct RUN``: a failed run's log becomes changes of its request."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from maple_parsl.correction import PlanCorrection
    from maple_parsl.runs.run import Run


def correct_run(run: Run, out: Path | None, json: bool) -> int:
    """Diagnose a run, correct its plan, print the difference of the scripts and the options that make it.

    Exit code 0: a plan that passes. 1: it cannot be put right by changing the launch, or the run did not fail.
    """
    import maple_parsl.api as api
    from maple_parsl.checking.difference import unified
    from maple_parsl.errors import RequestError
    from maple_parsl.runs.diagnosed import diagnosed

    diagnosis = diagnosed(run)
    old = run.plan
    made = api.correct(old, diagnosis)
    # The run's own name and folders are not part of what changes.
    before = old.model_copy(update={"place": None, "job_name": made.plan.job_name if made.plan else old.job_name})
    new = made.plan.script if made.plan is not None else before.script
    changes = unified(before.script.encode(), new.encode(), "script.sh")
    if out is not None and made.plan is not None:
        try:
            out.write_text(new, encoding="utf-8")
        except OSError as error:
            raise RequestError(f"{out}: {(error.strerror or str(error)).lower()}") from None
    if json:
        from maple_parsl.cli.output import emit_json

        first = diagnosis.causes[0].model_dump(mode="json", by_alias=True) if diagnosis.causes else None
        dumped = made.model_dump(mode="json", by_alias=True, exclude={"plan"})
        stated = [change.model_dump(mode="json") for change in made.changed_statements]
        own = {"run": run.id, "cause": first, "correct": made.correct, "flags": made.flags, "diff": changes}
        emit_json({**dumped, **own, "changed_statements": stated, "script": new if made.plan else None})
    else:
        _print(made, changes)
    return 0 if made.correct and made.changes else 1


def _print(made: PlanCorrection, changes: str) -> None:
    from maple_parsl.terminal import clean

    sys.stdout.write(clean(changes))
    for change in made.changes:
        was = f" (you had said {change.before})" if change.stated else ""
        sys.stderr.write(
            f"note: {change.field} becomes {clean(change.after or 'unset')}{clean(was)}: {clean(change.why)}\n"
        )
    for reason in made.cannot:
        sys.stderr.write(f"cannot, because: {clean(reason)}\n")
    if made.flags and made.correct:
        sys.stderr.write(f"the same with maple run: {clean(made.flags)}\n")
    if not made.changes and not made.cannot:
        sys.stderr.write("nothing to correct\n")
