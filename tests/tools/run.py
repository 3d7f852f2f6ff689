"""Run the tests in parts, each with its budget, and print at the end how long each took.

A part over its budget is reported, not failed: machines differ. A failed part fails the run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PYTHON = sys.executable
BIN = Path(PYTHON).parent


@dataclass(frozen=True)
class Part:
    """A part of the tests: its name, its commands, its budget in minutes."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    minutes: float


def pytest(*arguments: str, workers: int = 1, seconds: int = 600) -> tuple[str, ...]:
    spread = ("-n", str(workers), "--dist", "loadgroup") if workers > 1 else ()
    return (PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--timeout={seconds}", *spread, *arguments)


IN = "tests/integration"
MUTATIONS = "tests/property/test_mutations.py"
CHECK = Part(
    "static, unit, golden",
    (
        (str(BIN / "ruff"), "check", "."),
        (str(BIN / "ruff"), "format", "--check", "."),
        (str(BIN / "mypy"),),
        (str(BIN / "lint-imports"),),
        pytest("tests/unit", "tests/property", "tests/golden", "tests/extraction", f"--ignore={MUTATIONS}", workers=2),
    ),
    3,
)
VERIFIER = ("tests/cases", MUTATIONS, f"{IN}/slurm/test_faults.py", f"{IN}/slurm/test_port.py")
VERIFIER += (
    f"{IN}/slurm/test_preflight.py",
    f"{IN}/torch/test_preflight.py",
)
WEEKLY = (f"{IN}/slurm/test_sweeps.py", f"{IN}/slurm/test_hand.py", f"{IN}/slurm/test_manners.py")
WEEKLY += (f"{IN}/slurm/test_own_cluster.py", f"{IN}/slurm/test_watchdog.py", f"{IN}/slurm/test_restarts.py")
WEEKLY += (f"{IN}/pbs/test_arrays.py", f"{IN}/pbs/test_own_cluster.py", f"{IN}/browser")
BOOK = (PYTHON, "-m", "tests.tools.docs")
AGENTS = ("tests/agents", "tests/judge", f"{IN}/slurm/test_judge.py")
# The stand starts once, and its faults are for one test at a time.
GLOBUS = (f"{IN}/globus",)
KILLED = "test_a_client_killed_at_any_moment_leaves_one_job_or_none"
GLOBUS_SAMPLE = (f"{IN}/globus/test_runs.py", f"{IN}/globus/test_faults.py::{KILLED}")
ELSEWHERE = (f"{IN}/test_ssh.py", f"{IN}/test_fleet_worker.py")
OTHERS = (*VERIFIER[2:], *WEEKLY, *AGENTS[2:], *GLOBUS, *ELSEWHERE)
PARTS = (
    CHECK,
    Part("main job", (pytest(IN, *(f"--ignore={path}" for path in OTHERS), workers=2), pytest("tests/package")), 14),
    Part("verifier", (pytest(*VERIFIER, workers=2),), 10),
    Part("weekly use", (pytest(*WEEKLY, workers=2), BOOK), 8),
    Part("agents", (pytest(*AGENTS, workers=2),), 10),
    Part("globus", (pytest(*GLOBUS_SAMPLE, seconds=900), pytest(*ELSEWHERE, workers=2)), 12),
)
ALL_OF_GLOBUS = Part("globus, every fault", (pytest(*GLOBUS, seconds=900),), 40)


def run(part: Part, environment: dict[str, str]) -> tuple[bool, float, int, int]:
    """Run a part's commands, all of them; whether they passed, seconds, tests passed and failed."""
    started, good, passed, failed = time.monotonic(), True, 0, 0
    for command in part.commands:
        shown = " ".join(word.replace(str(BIN) + "/", "") for word in command)
        print(f"\n=== {part.name}: {shown}", flush=True)
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for row in process.stdout:
            print(row, end="", flush=True)
            if re.search(r"(passed|failed|error).* in [\d.]+s", row):
                passed += sum(map(int, re.findall(r"(\d+) passed", row)))
                failed += sum(map(int, re.findall(r"(\d+) (?:failed|error)", row)))
        if process.wait():
            good = False
            print(f"=== {part.name}: exit code {process.returncode}", flush=True)
    return good, time.monotonic() - started, passed, failed


def main() -> int:
    what = sys.argv[1] if len(sys.argv) > 1 else "test"
    parts = (CHECK,) if what == "check" else PARTS if what != "full" else (*PARTS, ALL_OF_GLOBUS)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    if what == "full":
        environment |= {
            "MAPLE_FULL": "1",
            "MAPLE_KILLS": "100",
            "MAPLE_FUZZ_SECONDS": "3600",
            "MAPLE_BENCH_CASES": "567",
        }
    rows, all_good, passed, failed = [], True, 0, 0
    for part in parts:
        good, seconds, ok, bad = run(part, environment)
        all_good &= good
        passed, failed = passed + ok, failed + bad
        late = "" if seconds <= part.minutes * 60 else "  over its budget"
        rows.append(
            f"  {part.name:<24} {seconds / 60:5.1f} min of {part.minutes:g}  {'ok' if good else 'FAILED'}{late}"
        )
    print("\nTime of each part, and its budget:")
    print("\n".join(rows))
    print(f"{passed} passed, {failed or int(not all_good)} failed")
    return 0 if all_good else 1


if __name__ == "__main__":
    sys.exit(main())
