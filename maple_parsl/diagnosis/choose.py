"""Which candidate is the first cause: the most causal, and of those the earliest."""

from __future__ import annotations

from collections.abc import Sequence

from maple_parsl.diagnosis.event import Candidate

HEAVY = 55  # from here on one candidate outweighs another; below, the earlier of those from 50 on is first


def _level(weight: int) -> int:
    """Signatures from 50 to 54 and exceptions that none knows are equals: the earlier is first."""
    return 50 if 50 <= weight < HEAVY else weight


def ordered(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Most causal first, then earliest: by time where every log tells the time, else as the logs were given."""
    place = _places(candidates)
    logs = [candidate for candidate in candidates if candidate.digest.source.kind == "log"]
    timed = all(candidate.time is not None for candidate in logs)

    def key(candidate: Candidate) -> tuple[object, ...]:
        source = candidate.digest.source
        kind = {"submission": 0, "log": 1, "accounting": 2}[source.kind]
        signed = 0 if candidate.signature else 1
        if timed and kind == 1:
            rank = source.rank if source.rank is not None else 10**9
            where: tuple[object, ...] = (candidate.time, rank, source.name, candidate.line.number)
        else:
            where = (0.0, place[id(candidate.digest)], "", candidate.line.number)
        return (-_level(candidate.weight), kind, *where, signed, -candidate.weight)

    return sorted(candidates, key=key)


def _places(candidates: Sequence[Candidate]) -> dict[int, int]:
    places: dict[int, int] = {}
    for candidate in candidates:
        places.setdefault(id(candidate.digest), len(places))
    return places


def first_of(ranked: Sequence[Candidate]) -> Candidate:
    """The first cause; an exception is shown where its message was printed first."""
    first = ranked[0]
    if first.signature is None and first.traceback is not None and len(first.traceback.message) >= 12:
        message = first.traceback.message[:200]
        for other in ranked:
            if other.signature is None and other.traceback is None and message in other.line.text:
                first.digest, first.line = other.digest, other.line
                break
    return first
