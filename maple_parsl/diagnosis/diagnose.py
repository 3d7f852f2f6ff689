"""The first cause under the avalanche."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from maple_parsl.diagnosis.choose import first_of, ordered
from maple_parsl.diagnosis.digest import Digest, Matcher, digest
from maple_parsl.diagnosis.engine import Pattern, compile_pattern
from maple_parsl.diagnosis.event import EXCEPTION, Meaning, collect
from maple_parsl.diagnosis.explain import Context, explain
from maple_parsl.diagnosis.model import Cause, Diagnosis, Evidence
from maple_parsl.diagnosis.script import facts_of
from maple_parsl.diagnosis.signature import Signatures, load_signatures
from maple_parsl.diagnosis.source import LogSource
from maple_parsl.site import Site

_ORDER = {"submission": 0, "log": 1, "accounting": 2}
MORE_CAUSES, CONSEQUENCES = 3, 20
CONSEQUENCE = 12  # up to this weight a line only follows from a cause


def diagnose(
    sources: Iterable[LogSource],
    script: str | None = None,
    site: Site | None = None,
    accounting: str | None = None,
    exit_record: Mapping[str, Any] | None = None,
    signatures: Signatures | None = None,
) -> Diagnosis:
    """Find what failed first.

    Args:
        sources: the logs, each read once; what the scheduler printed at submission may be among them.
        script: text of the batch script: tells whether it is at fault, and which line to change.
        accounting: output of ``sacct`` or ``qstat -f``.
        exit_record: a run's ``exit.json``: which rank failed first, and with what code.
        signatures: instead of those of the package and the user.
    """
    known = signatures or load_signatures()
    matcher, meaning = _compiled(known)
    notices: list[str] = []
    logs = sorted(sources, key=lambda source: _ORDER[source.kind])
    if accounting:
        logs.append(LogSource.of_text("accounting", _marked(accounting), "accounting"))
    if ended := _end_of(exit_record):
        logs.append(LogSource.of_text("exit.json", ended, "accounting"))
    digests: list[Digest] = []
    for source in logs:
        try:
            digests.append(digest(source, matcher))
        except OSError as error:
            notices.append(f"{source.name} cannot be read: {error.strerror or error}")
    events = collect(digests, meaning)
    facts = facts_of(script, accounting or "", _site_words(site))
    context = Context(known, facts, digests, script, events.progress)
    if not events.candidates:
        return Diagnosis(suspicious=_suspicious(digests), notices=tuple(notices))
    ranked = ordered(events.candidates)
    first = first_of(ranked)
    causes: list[Cause] = []
    consequences: list[Cause] = []
    spoken: set[str] = set()
    if first.weight > CONSEQUENCE:  # else the logs end before their cause
        causes.append(_with_record(explain(first, context), exit_record))
        spoken = {first.name, causes[0].fault_class}
    for candidate in ranked:
        if candidate.name in spoken or (causes and candidate.line is first.line):
            continue
        spoken.add(candidate.name)
        cause = explain(candidate, context)
        if candidate.weight >= EXCEPTION and cause.fault_class not in spoken and len(causes) < MORE_CAUSES:
            causes.append(cause)
            spoken.add(cause.fault_class)
        elif len(consequences) < CONSEQUENCES:
            consequences.append(cause)
    return Diagnosis(
        causes=tuple(causes),
        consequences=tuple(consequences),
        suspicious=() if causes else _suspicious(digests),
        notices=tuple(notices),
    )


@cache
def _compiled(known: Signatures) -> tuple[Matcher, Meaning]:
    compiled: dict[str, Pattern] = {}
    for signature in known.failure:
        for pattern in (*signature.any, *signature.not_, *signature.unless, *signature.also):
            compiled[pattern] = compile_pattern(pattern)
    return Matcher(known), Meaning(known.failure, compiled)


def _marked(accounting: str) -> str:
    """Columns between bars, as ``sacct -P`` prints them, also where they are between blanks."""
    lines = []
    for line in accounting.splitlines():
        if "|" not in line and '"' not in line and "=" not in line and len(line.split()) > 2:
            line = "|".join(line.split())
        lines.append(line + "|" if "|" in line else line)
    return "\n".join(lines)


def _end_of(record: Mapping[str, Any] | None) -> str:
    """The exit record in the words of a launcher."""
    failure = (record or {}).get("first_failure")
    failure = failure if isinstance(failure, Mapping) else {}
    code = failure.get("code", (record or {}).get("code"))
    rank = failure.get("rank")
    if not isinstance(code, int) or code <= 0:
        return ""
    return f"first failure: task {rank if isinstance(rank, int) else 0}: Exited with exit code {code}"


def _with_record(cause: Cause, record: Mapping[str, Any] | None) -> Cause:
    failure = (record or {}).get("first_failure")
    if not isinstance(failure, Mapping):
        return cause
    update: dict[str, Any] = {}
    if cause.rank is None and isinstance(failure.get("rank"), int):
        update["rank"] = failure["rank"]
    if cause.host is None and isinstance(failure.get("host"), str):
        update["host"] = failure["host"]
    return cause.model_copy(update=update)


def _site_words(site: Site | None) -> str:
    if site is None:
        return ""
    kinds = site.kinds.values()
    return " ".join([site.scheduler.kind, *(f"{kind.backend} {kind.vendor}" for kind in kinds)])


def _suspicious(digests: Sequence[Digest]) -> tuple[Evidence, ...]:
    """What a person should look at first: lines that speak of errors, and the last ones."""
    found: list[Evidence] = []
    for one in digests:
        lines = [line for line in one.lines if line.text.strip()]
        bad = [line for line in lines if re.search(r"(?i)error|fatal|fail|abort|cannot|denied|exception", line.text)]
        chosen = {line.number: line for line in (*bad[:3], *lines[-3:])}
        found += [
            Evidence(file=one.source.name, line=number, text=chosen[number].text[:400]) for number in sorted(chosen)
        ]
    return tuple(found[:30])
