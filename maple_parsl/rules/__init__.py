"""Rules: every known kind of fault in a launch script. ``check(text)`` gives the findings."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from maple_parsl.finding import Finding
from maple_parsl.rules.base import CLASSES, Found, Rule, Subject

if TYPE_CHECKING:
    from maple_parsl.script.model import Script
    from maple_parsl.site import Site

__all__ = ["CLASSES", "Found", "Rule", "Subject", "check", "rules"]

# One module per family; each has RULES.
FAMILIES = (
    "launchers",
    "launchers_nodes",
    "launchers_tasks",
    "launcher_hosts",
    "steps",
    "rendezvous",
    "node_ranks",
    "rank_variables",
    "ports",
    "nested_steps",
    "srun_cpus",
    "mpi",
    "hostfiles",
    "scheduler_variables",
    "cpus",
    "parallelism",
    "node_local",
    "executors",
    "script_format",
    "ignored_directives",
    "directive_text",
    "dialects",
    "site_dialects",
    "gpu_requests",
    "site_gpus",
    "gpu_visibility",
    "required",
    "accounts",
    "queue_limits",
    "memory",
    "environments",
    "networks",
    "intel",
    "offline",
    "containers",
    "inheritance",
    "contradictions",
    "values_given",
    "secrets",
    "injection",
)
MOST = 200  # findings of one rule on one script
_IGNORE = re.compile(r"#\s*maple:\s*ignore\[([a-z0-9,\s-]+)\]")
_ORDER = {"error": 0, "warning": 1, "note": 2}


@cache
def rules() -> dict[str, Rule]:
    """All rules by id, in the order of the families."""
    found: dict[str, Rule] = {}
    for family in FAMILIES:
        for rule in import_module(f"maple_parsl.rules.{family}").RULES:
            assert rule.id not in found, rule.id
            assert rule.fault_class in CLASSES, rule.fault_class
            found[rule.id] = rule
    return found


def check(
    script: Script | str | bytes,
    site: Site | None = None,
    *,
    name: str = "job.sh",
    directory: Path | None = None,
    disabled: Iterable[str] = (),
) -> list[Finding]:
    """Findings on a script, in the order of its lines; errors first where several share a line; of one rule at most
    200, of which the last says that there are more.

    Args:
        script: a read script, or its text.
        site: what the script is meant for; rules that compare with site facts need it.
        name, directory: of the script's file, for messages and for files it sources.
        disabled: rule ids not to apply. ``# maple: ignore[rule-id] reason`` on a line, or on a line of its own
            before it, does the same for one place.
    """
    from maple_parsl.script.rankmap import rank_map
    from maple_parsl.script.reader import read

    if isinstance(script, (str, bytes)):
        script = read(script, name=name, directory=directory)
    subject = Subject(script, rank_map(script, site), site)
    ignored = _ignored(subject.lines)
    off = set(disabled)
    findings: list[Finding] = []
    for rule in rules().values():
        if rule.id in off or (rule.needs_site and site is None):
            continue
        kept = 0
        for found in rule.check(subject):
            line = found.place.line if found.place else None
            if rule.id in ignored.get(line or 0, ()) or rule.id in ignored.get(0, ()):
                continue
            if kept == MOST:
                more = f"{findings[-1].message}; more places follow, which are not listed"
                findings[-1] = findings[-1].model_copy(update={"message": more})
                break
            findings.append(_finding(rule, found))
            kept += 1
    findings.sort(key=lambda f: (f.line or 0, _ORDER[f.severity], f.column or 0))
    return findings


def _finding(rule: Rule, found: Found) -> Finding:
    return Finding.model_validate(
        {
            "rule": rule.id,
            "class": rule.fault_class,
            "severity": found.severity or rule.severity,
            "message": found.message,
            "line": found.place.line if found.place else None,
            "column": found.place.column if found.place else None,
            "evidence": found.evidence or rule.source,
            "fix": found.fix or rule.fix,
            "edits": found.edits,
        }
    )


def _ignored(lines: tuple[str, ...]) -> dict[int, set[str]]:
    """Line number -> ids of the rules that are off there. A comment of its own counts for the next line."""
    found: dict[int, set[str]] = {}
    for number, text in enumerate(lines, 1):
        if "maple:" in text and (match := _IGNORE.search(text)):
            ids = {part.strip() for part in match[1].split(",")}
            alone = text.lstrip().startswith("#") and not text.lstrip().startswith(("#SBATCH", "#PBS", "#BSUB"))
            at = number + 1 if alone else number
            found.setdefault(at, set()).update(ids)
    return found
