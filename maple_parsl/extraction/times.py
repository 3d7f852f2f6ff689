"""How long a job may run: ``90 min``, ``an hour and a half``, ``1-00:00:00``, ``as long as possible``."""

from __future__ import annotations

from maple_parsl.extraction.sentence import Found, Sentence

# A time that is not how long the job may run.
_OTHER_BEFORE = frozenset(
    "timeout timeouts interval due deadline starts starting begins meeting conference wait waiting waited queued"
    " pending checkpoint checkpoints checkpointing save saves saving log logs logging validate validation eval evaluate"
    " heartbeat expires expire uptime downtime maintenance reservation epoch epochs takes~".split()
)
_TAKEN = frozenset("takes took needed lasted".split())  # what it takes, perhaps elsewhere: less than a limit stated
_OTHER_AFTER = frozenset("ago later old earlier per before away till until".split())
_ATOM = r"(?:N/No?i?U|(?:No?)?ho?i?U|Nyi?hU|N_?U(?:yi?h)?|iU(?:yi?h)?|D(?:yi?h)?|CU?|Uyi?h)"


def times(sentence: Sentence) -> list[Found]:
    """Values of ``walltime`` in seconds; ``None`` where only a vague time was stated, ``"longest"`` for the most."""
    made: list[Found] = []
    for match in sentence.find(rf"{_ATOM}(?:[,yi]?{_ATOM})*(?:N(?![ngGtPUxZ/_]))?"):
        first, last = match.start(), match.end() - 1
        if _elsewhere(sentence, first, last):
            continue
        seconds = _seconds(sentence, first, last)
        labelled = sentence.letter(first - 1) in ("w", "=", ":")
        sure = 1.0 if labelled else 0.6 if sentence.low(first - 1) in _TAKEN else 0.95
        made.append(sentence.found("walltime", seconds, first, last, sure))
        sentence.claim(first, last)
    for pattern, value, sure in (
        (r"X", "longest", 0.9),
        (r"V|vU|VU", None, 0.5),
        (r"w[i]?[=:i]?N(?![ngGtPUx])", None, 0.5),
    ):
        made += [sentence.found("walltime", value, m.start(), m.end() - 1, sure) for m in sentence.find(pattern)]
    return made


def _elsewhere(sentence: Sentence, first: int, last: int) -> bool:
    for at in range(max(0, first - 4), first):
        if sentence.letter(at) in ".;\n,":
            continue
        between = sentence.letters[at + 1 : first]
        if sentence.low(at) in _OTHER_BEFORE and not any(mark in between for mark in ".;\n,"):
            return True
    return sentence.low(last + 1) in _OTHER_AFTER or sentence.low(first - 1) in (
        "per",
        "every",
        "each",
        "next",
        "last",
        "past",
    )


def _seconds(sentence: Sentence, first: int, last: int) -> float | None:
    total, number, unit = 0.0, None, 3600.0
    at = first
    while at <= last:
        item, letter = sentence.items[at], sentence.items[at].letter
        if letter == "D":
            total, unit = total + item.value, 3600.0 if item.low.endswith(("h", "hr", "hrs", "hour", "hours")) else 60.0
        elif letter == "C":
            if sentence.letter(at + 1) == "U" and at + 1 <= last and item.low.count(":") == 1:
                hours, minutes = item.low.split(":")
                total += int(hours) * 3600 + int(minutes) * 60
                at += 1
            elif item.value is None:
                return None
            else:
                total += item.value
        elif letter == "N":
            number = float(item.value) if number is None else number + float(item.value)
            if at == last:  # "2 hrs 30"
                total += number * unit / 60
        elif letter == "/" and number is not None and sentence.letter(at + 1) == "N":
            number /= float(sentence.items[at + 1].value) or 1.0
            at += 1
        elif letter == "h":
            part = 0.25 if item.low.startswith("quarter") else 0.5
            if number is not None and sentence.letter(at - 1) in ("y", "i"):
                number += part
            elif number is not None:
                number *= part
            elif _ends_with_half(sentence, at, last):
                total += part * unit
            else:
                number = part
        elif letter == "U":
            unit = float(item.value)
            total += (1.0 if number is None else number) * unit
            number = None
        at += 1
    return round(total, 3)


def _ends_with_half(sentence: Sentence, at: int, last: int) -> bool:
    """``an hour and a half``: the half is of the unit before it."""
    return not any(sentence.items[k].letter == "U" for k in range(at, last + 1)) and any(
        sentence.items[k].letter in "UD" for k in range(max(0, at - 3), at)
    )
