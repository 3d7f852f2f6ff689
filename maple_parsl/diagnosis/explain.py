"""A candidate put into words: class, place, explanation, edits, by the script and the rest of the logs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from string import Formatter
from typing import Any

from maple_parsl.diagnosis.digest import Digest
from maple_parsl.diagnosis.engine import Pattern, compile_pattern
from maple_parsl.diagnosis.event import Candidate
from maple_parsl.diagnosis.line import clean, host_of
from maple_parsl.diagnosis.model import Cause, Edit, Evidence
from maple_parsl.diagnosis.script import Facts, edit_of
from maple_parsl.diagnosis.signature import Frames, Signature, Signatures, When

SHOWN = 500


@dataclass(frozen=True, slots=True)
class Context:
    """What is known beside the line itself."""

    signatures: Signatures
    facts: Facts
    digests: Sequence[Digest]
    script: str | None
    progress: bool


def explain(candidate: Candidate, context: Context) -> Cause:
    """The cause as the user reads it."""
    line = candidate.line
    frame = candidate.traceback.frame if candidate.traceback else None
    evidence = Evidence(file=candidate.digest.source.name, line=line.number, text=line.text[:SHOWN], frame=frame)
    rank = line.rank if line.rank is not None else candidate.digest.source.rank
    host = host_of(line.text)
    if rank is None and "exitcode" in line.text:
        rank, told = _summary(candidate)
        host = host or told
    known: dict[str, Any] = {"rank": rank, "host": host, "evidence": evidence}
    if candidate.signature is None:
        return _unknown(candidate, known, context)
    signature = candidate.signature
    values: dict[str, Any] = {
        "fault_class": signature.fault_class,
        "where": signature.where,
        "cause": signature.cause,
        "do": signature.do,
        "sure": signature.sure,
        "script_classes": signature.script or context.signatures.script_classes(signature.fault_class),
        "edit": None,
    }
    when = _condition(signature, line.text, context)
    if when is not None:
        if when.fault_class is not None:
            values["script_classes"] = context.signatures.script_classes(when.fault_class)
        values |= {
            name: getattr(when, name)
            for name in ("fault_class", "where", "cause", "do", "sure", "script_classes", "edit")
            if getattr(when, name) is not None
        }
    if inside := _by_frames(candidate, values["fault_class"], context):
        values["fault_class"], values["where"] = inside.fault_class, inside.where or values["where"]
        values["script_classes"] = context.signatures.script_classes(inside.fault_class)
    captured = _captured(signature, line.text)
    alternatives = list(candidate.others)
    if values["fault_class"] != signature.fault_class:
        alternatives.insert(0, signature.fault_class)
    edits: list[Edit] = []
    for number, words in enumerate(values["do"]):
        change = values["edit"] if number == 0 else None
        edits.append(edit_of(_filled(words, captured), change, context.script))
    return Cause(
        script_classes=values["script_classes"],
        where=values["where"],
        explanation=_filled(values["cause"], captured),
        edits=tuple(edits),
        confidence=values["sure"],
        alternatives=tuple(name for name in dict.fromkeys(alternatives) if name != values["fault_class"]),
        signature=signature.id,
        source=signature.source,
        **known | {"class": values["fault_class"]},
    )


def _summary(candidate: Candidate) -> tuple[int | None, str | None]:
    """Rank and host of a failed process as torchrun's summary states them, found by the process id."""
    lines = candidate.digest.lines
    process = re.search(r"\bpid: (\d+)\)", candidate.line.text)
    for at, line in enumerate(lines):
        if process and "exitcode  :" in line.text and process[0] in line.text:
            block = "\n".join(other.text for other in lines[max(0, at - 3) : at])
            rank = re.search(r"rank +: (\d+) \(local_rank", block)
            host = re.search(r"host +: (\S+)", block)
            return int(rank[1]) if rank else None, host[1] if host else None
    return None, None


def _unknown(candidate: Candidate, known: dict[str, Any], context: Context) -> Cause:
    traceback = candidate.traceback
    if traceback is not None:
        place = f" at {traceback.frame}" if traceback.frame else ""
        text = f"The program raised {traceback.kind}{place}: {traceback.message[:300]}".rstrip(": ")
        sure, name = 0.75, "exception"
    else:
        text, sure, name = (
            "The program reported an error here, and the others then waited for it or stopped.",
            0.5,
            "error-line",
        )
    words = "Correct the program (or its data) at the place named; the other errors follow from this one."
    inside = _by_frames(candidate, "", context)
    fault_class = inside.fault_class if inside else "program_exception"
    return Cause(
        script_classes=context.signatures.script_classes(fault_class),
        where=(inside and inside.where) or "program",
        explanation=text,
        edits=(Edit(words=words),),
        confidence=sure,
        signature=name,
        **known | {"class": fault_class},
    )


def _by_frames(candidate: Candidate, fault_class: str, context: Context) -> Frames | None:
    """What the files of the innermost frames say."""
    frames = candidate.traceback.frames if candidate.traceback else []
    for entry in context.signatures.frames:
        if not fault_class or fault_class in entry.over:
            compiled = _pattern(entry.file)
            if any(compiled.search(frame[0].encode()) for frame in frames[-entry.depth :]):
                return entry
    return None


def _condition(signature: Signature, text: str, context: Context) -> When | None:
    facts = context.facts
    script = facts.script.encode("utf-8", "surrogateescape") if facts.script is not None else None
    for when in signature.when:
        if when.script is not None and (script is None or not _pattern(when.script).search(script)):
            continue
        if when.no_script is not None and (script is None or _pattern(when.no_script).search(script)):
            continue
        if when.value is not None and not _pattern(when.value).search(text.encode()):
            continue
        if when.site is not None and not _pattern(when.site).search(facts.site.encode()):
            continue
        if when.many_nodes is not None and (facts.nodes is None or (facts.nodes > 1) is not when.many_nodes):
            continue
        if when.progress is not None and context.progress is not when.progress:
            continue
        if when.logs is not None and not _anywhere(when.logs, context.digests):
            continue
        if when.no_logs is not None and _anywhere(when.no_logs, context.digests):
            continue
        return when
    return None


def _anywhere(pattern: str, digests: Sequence[Digest]) -> bool:
    compiled = _pattern(pattern)
    return any(compiled.search(line.text.encode()) for one in digests if one.source.kind == "log" for line in one.lines)


@cache
def _pattern(text: str) -> Pattern:
    return compile_pattern(text)


def _captured(signature: Signature, text: str) -> dict[str, str]:
    """Named groups of the pattern that matched; ``name2`` is another spelling of ``name``."""
    raw = text.encode()
    for pattern in signature.any:
        if found := _pattern(pattern).search(raw):
            groups = {name.decode().rstrip("0123456789"): value for name, value in found.groupdict().items() if value}
            return {name: clean(value)[:200] for name, value in groups.items()}
    return {}


class _Gaps(Formatter):
    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Any) -> Any:
        return kwargs.get(str(key), "?")


def _filled(text: str, values: dict[str, str]) -> str:
    for gap in (" ({name})", " ({port})", " ({type})", " ({value})", " ({host})", ": {what}", ": {why}"):
        name = gap.strip(" (){}:")
        if gap in text and name not in values:
            text = text.replace(gap, "")
    try:
        return _Gaps().vformat(text, (), values).replace("?:?", "the address it was given").replace("{name}", "it")
    except (ValueError, IndexError, KeyError):
        return text
