"""Mending in rounds: apply, check again, until nothing changes; an edit that brings a new error is taken back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from maple_parsl.checking.edits import ROUNDS, apply, editable
from maple_parsl.finding import Finding

Check = Callable[[bytes], list[Finding]]
Choose = Callable[[Iterable[Finding]], list[Finding]]


@dataclass(frozen=True)
class Mended:
    """A text after all rounds: what was applied, what is still found, and edits that were tried and taken back."""

    data: bytes
    applied: tuple[Finding, ...]
    left: tuple[Finding, ...]
    refused: tuple[Finding, ...] = ()


def mend(data: bytes, check: Check, choose: Choose, found: list[Finding] | None = None) -> Mended:
    """Apply the edits of the chosen findings until no more can be applied (at most ten rounds).

    Args:
        check: findings of a text. choose: those to apply. found: findings of ``data`` where they are known.
    """
    left = check(data) if found is None else found
    applied: list[Finding] = []
    refused: dict[tuple[str, str], Finding] = {}
    seen = {data}
    for _ in range(ROUNDS if editable(data) else 0):
        wanted = [f for f in choose(left) if f.edits and _key(f) not in refused]
        made = _round(data, left, wanted, check)
        if made is None and len(wanted) > 1:
            for one in wanted:
                made = _round(data, left, [one], check)
                if made is not None:
                    break
                refused[_key(one)] = one
        elif made is None and wanted:
            refused[_key(wanted[0])] = wanted[0]
        if made is None or made[0] in seen:
            break
        data, left = made[0], made[1]
        seen.add(data)
        applied += made[2]
    return Mended(data, tuple(applied), tuple(left), tuple(refused.values()))


def _round(
    data: bytes, before: list[Finding], wanted: list[Finding], check: Check
) -> tuple[bytes, list[Finding], tuple[Finding, ...]] | None:
    """Text, findings and what was applied; None when nothing was, or when it brought an error of a new kind."""
    made = apply(data, wanted)
    if made.data == data:
        return None
    after = check(made.data)
    if _errors(after) - _errors(before):
        return None
    return made.data, after, made.applied


def _errors(findings: Iterable[Finding]) -> Counter[str]:
    return Counter(f.rule for f in findings if f.severity == "error")


def _key(finding: Finding) -> tuple[str, str]:
    return finding.rule, finding.message
