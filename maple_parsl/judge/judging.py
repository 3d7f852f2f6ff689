"""Judge one script."""

from __future__ import annotations

from maple_parsl.judge.case import Case, Program, read_case
from maple_parsl.judge.check_run import of_program, run_faults
from maple_parsl.judge.check_submission import submission_faults
from maple_parsl.judge.sandbox import Sandbox, SandboxError
from maple_parsl.judge.sites import judged_site
from maple_parsl.judge.submission import read
from maple_parsl.judge.verdict import Fault, Verdict
from maple_parsl.judge.world import kind_of, world

__all__ = ["Case", "Fault", "Program", "Sandbox", "SandboxError", "Verdict", "judge", "read_case"]

MOST_BYTES = 1_000_000


def judge(script: str, case: Case, sandbox: Sandbox, *, record: bool = False) -> Verdict:
    """Run a script as the scheduler of its site would, contained, and compare with the case.

    Args:
        script: the text of the script. sandbox: where it runs; see :class:`Sandbox`.
        record: keep everything that happened in the verdict.

    Raises:
        UnknownNameError: a site the judge has no table for. SandboxError: scripts cannot be contained here.
    """
    site = judged_site(case.site)
    if "\0" in script or len(script) > MOST_BYTES:
        return Verdict(
            faults=(Fault(kind="script", message="not a script: a zero byte, or more than 1 MB"),), processes=0
        )
    asked = read(script, site.scheduler)
    made = world(case, site, asked, script)
    happened = sandbox.run(made)
    kind = kind_of(case, site)
    faults = [*submission_faults(case, site, asked), *run_faults(case, site, kind, made, happened)]
    started = len(of_program(case, happened))
    return Verdict(faults=tuple(faults), processes=started, record=happened if record else {})
