"""Nodes, GPUs, tiles and processes: each alone, per node, and in total."""

from __future__ import annotations

from maple_parsl.extraction.sentence import Found, Sentence

_UNIT = "[gGtP]"
_ADJECTIVE = "[?iGSWgFtB]{0,3}?"
# What follows a number of devices when each node has that many.
_PER_NODE = r"(?:pi?[?iGSg]{0,2}n|e|/n?|[o?]?ei?n|in)"
_BEFORE_UNIT = "[?iWT]{0,2}?"


_ONE = frozenset({"gpu", "accelerator"})


def counts(sentence: Sentence) -> list[Found]:
    """Values of ``nodes``, ``gpus`` (per node), ``gpus_total`` and ``gpus_plain`` (not said which), and ``unit``."""
    found: list[Found] = []
    ranges = _ranges(sentence)
    for pattern, kind in _PATTERNS:
        for match in sentence.find(pattern):
            at = match.start("N")
            number = sentence.items[at].value
            first, last = match.span()
            if any(first <= place <= last for place in ranges) and kind != "pair":
                found.append(sentence.found("vague", kind, first, last - 1))
                sentence.claim(first, last - 1)
                continue
            unit = next((s for s in match.group() if s in "gGtPH"), "")
            if unit == "H":
                unit = next(item.value for item in sentence.items[first:last] if item.letter == "H")
            if kind == "pair":
                other = match.start("M")
                found.append(sentence.found("nodes", number, at, at))
                found.append(sentence.found("gpus", sentence.items[other].value, other, last - 1))
            elif kind == "node_then_gpus":
                found.append(sentence.found("gpus", number, at, last - 1))
                first = at
            else:
                found.append(sentence.found(kind, number, first if kind != "nodes" else at, last - 1))
            if unit in ("t", "P"):
                found.append(sentence.found("unit_" + unit, kind, first, last - 1))
            sentence.claim(first, last - 1)
    found += _articles(sentence)
    if not any(
        each.field in ("nodes", "gpus_total") for each in found
    ):  # "the whole node" is one, if nothing else is said
        found += [
            sentence.found("nodes", 1, m.start(), m.end() - 1, 0.8)
            for m in sentence.find(r"Wi?n")
            if sentence.low(m.end() - 1) in ("node", "host")
        ]
    found += _bare(sentence, found)
    return found


_PATTERNS = (
    (r"(?P<N>N)_?H", "gpus"),
    (r"H[i]{0,2}[=:]?(?P<N>N)(?![ngtPU])", "gpus"),
    (rf"(?P<N>N)_?x?{_BEFORE_UNIT}{_UNIT}{{1,2}}[?]?{_PER_NODE}", "gpus"),
    (r"(?P<N>N)(?:pi?n|/n?(?![N]))", "gpus"),
    (rf"(?:nx)(?P<N>N)i?{_UNIT}{{0,2}}", "node_then_gpus"),
    (rf"(?<=n)[,o]?e[o?i]{{0,2}}(?P<N>N)[?i]{{0,2}}{_UNIT}{{1,2}}", "gpus"),
    (rf"(?P<N>N)x(?P<M>N)[?i]{{0,2}}{_UNIT}{{1,2}}", "pair"),
    (r"(?P<N>N)x(?P<M>N)(?![NUnZ])", "pair"),
    (rf"(?P<N>N)_?x?{_BEFORE_UNIT}{_UNIT}{{1,2}}[,]?[?oi]{{0,2}}T", "gpus_total"),
    (rf"(?P<N>N)T{_UNIT}{{1,2}}", "gpus_total"),
    (rf"T[io=:]{{0,3}}(?P<N>N)[?iW]{{0,2}}{_UNIT}{{1,2}}", "gpus_total"),
    (rf"T[io]{{0,2}}{_UNIT}{{1,2}}[=:i]{{0,2}}(?P<N>N)", "gpus_total"),
    (r"T[i]?[=:](?P<N>N)(?![nU])", "gpus_total"),
    (rf"(?P<N>N)_?x?{_ADJECTIVE}n(?![UN]|[=:]N)", "nodes"),
    (rf"(?P<N>N)_?x?{_ADJECTIVE}n(?!U)", "nodes"),
    (r"n[i]?[=:i]\"?(?P<N>N)(?![gtPUn])", "nodes"),
    (r"(?<!N)n(?P<N>N)(?![gtPUn])", "nodes"),
    (r"n\?i[=:]?(?P<N>N)(?![gtPUn])", "nodes"),  # "nodes we need 2"
    (rf"(?P<N>N)_?x?{_BEFORE_UNIT}{_UNIT}{{1,2}}", "gpus_plain"),
    (r"(?<![a-zA-Z])gi?[=:](?P<N>N)(?![ngtPU])", "gpus_plain"),
)


def _ranges(sentence: Sentence) -> list[int]:
    """Numbers that are no single number: ``2-4 nodes``, ``2 or 4 nodes``, ``between 2 and 4``, ``at least 4``."""
    places: list[int] = []
    for match in sentence.find(r"N(?:[nU]?\||_|o(?=N))N(?=_?[?iGSg]{0,2}[ngtU])"):
        if sentence.letters[match.start() + 1] == "o" and sentence.low(match.start() + 1) != "to":
            continue
        places += [match.start(), match.end() - 1]
    for match in sentence.find(r"lN(?:yN)?(?=_?[?iGSg]{0,2}[ngt])"):
        if sentence.low(match.start()) in (
            "up to",
            "at most",
            "no more than",
            "maximum of",
            "max",
            "maximum",
            "at least",
            "minimum of",
            "no less than",
            "minimum",
            "between",
        ):
            places += [k for k in range(match.start(), match.end()) if sentence.letters[k] == "N"]
    return places


def _articles(sentence: Sentence) -> list[Found]:
    """``a node`` is one; ``GPUs a node`` was read before."""
    made = []
    for match in sentence.find(r"i[?GSWgF]{0,2}?n(?![UNn])"):
        if sentence.low(match.start()) in (
            "a",
            "an",
            "un",
            "una",
            "ein",
            "einem",
            "einen",
            "une",
            "um",
        ) and sentence.letter(match.start() - 1) not in ("g", "t", "P", "p"):
            made.append(sentence.found("nodes", 1, match.start(), match.end() - 1, 0.9))
            sentence.claim(match.start(), match.end() - 1)
    made += [
        sentence.found("gpus_plain", 1, match.start(), match.end() - 1, 0.8)
        for match in sentence.find(r"i[gG](?![nNTpe/H])")
        if sentence.low(match.start()) in ("a", "an") and sentence.low(match.start() + 1) in _ONE
    ]
    return made


def _bare(sentence: Sentence, found: list[Found]) -> list[Found]:
    """A number without a unit that puts an earlier count right: ``4 nodes, no, make it 8``."""
    made = []
    for match in sentence.find(r"~[,i~o]{0,4}(?P<N>N)(?![ngGtPUxZ_])"):
        at = match.start("N")
        before = [
            each for each in found if each.last < at and each.field in ("nodes", "gpus", "gpus_total", "gpus_plain")
        ]
        nearer = [k for k in range(max((e.last for e in before), default=0), at) if sentence.letters[k] in "UDC"]
        if before and not nearer:
            nearest = max(before, key=lambda each: each.last)
            made.append(sentence.found(nearest.field, sentence.items[at].value, at, at, 0.9))
    for match in sentence.find(r"0[n0]?,?(?:[?io,])(?P<N>N)(?![ngGtPUxZ_])"):
        first = match.start()
        negated = next(
            (
                sentence.items[k]
                for k in sorted(sentence.negated)
                if k >= first - 2 and sentence.items[k].letter in "ngt"
            ),
            None,
        )
        if negated is not None and sentence.low(match.start("N") - 1) in ("but", "rather"):
            at = match.start("N")
            field = "nodes" if negated.letter == "n" else "gpus_plain"
            made.append(sentence.found(field, sentence.items[at].value, at, at, 0.9))
    return made
