"""What is trained and how: site, model, framework, paradigm, precision."""

from __future__ import annotations

from maple_parsl.extraction.sentence import Found, Sentence
from maple_parsl.extraction.vocabulary import Vocabulary

_COUNTED = frozenset(
    "tokens token samples images examples params parameters points words sequences records rows".split()
)
_PARAMETERS = frozenset("parameter parameters param params".split())
_NO_SITE = frozenset("each every one cluster machine".split())


def sites(sentence: Sentence, vocabulary: Vocabulary) -> list[Found]:
    """Values of ``site``, and ``site_unknown`` for a name that neither the catalogue nor the vocabulary has."""
    made = [sentence.found("site", sentence.items[at].value, at, at) for at in _at(sentence, "S")]
    if made:
        return made
    for match in sentence.find(
        r"s[=:i]{0,2}(\?)|(\?)s(?![=:])|n[?]?o(\?)|[gG]o(\?)|o(\?)[,.]?N[iW]?n|o(\?)s|o(\?)oN[iW?]?n"
    ):
        at = next(match.start(k) for k in range(1, 8) if match.group(k))
        item = sentence.items[at]
        low = item.low
        labelled = bool(match.group(1)) and sentence.letter(at - 1) in ("=", ":")
        preposed = sentence.low(at - 1) in ("on", "at", "of", "en", "auf", "sur", "su")
        if (
            low in vocabulary.common
            or low in vocabulary.datasets
            or low in _NO_SITE
            or not low[0].isalpha()
            or len(low) < 3
        ):
            continue
        apposed = match.group(1) and item.text[0].isupper() and sentence.low(at - 1) in ("cluster", "machine", "system")
        named = apposed or (
            match.group(2) and (item.text[0].isupper() and sentence.low(at - 1) in ("the", "our", "on", "at"))
        )
        if labelled or named or (preposed and not match.group(2) and _place_name(item.text, match.group(5) is None)):
            made.append(sentence.found("site_unknown", item.text, at, at, 0.6))
            return made
    return made


def _place_name(text: str, counted: bool) -> bool:
    return text[0].isupper() or counted


def models(sentence: Sentence) -> list[Found]:
    """Values of ``model``: a family with its size, or a size alone (``our 13B run``)."""
    made: list[Found] = []
    for at in _at(sentence, "M"):
        last = at
        while last + 1 < len(sentence.items) and _belongs(sentence, at, last + 1):
            last += 1
        if last == at and sentence.letter(at - 1) == "Z":
            at -= 1
        if sentence.items[at].value not in (None, sentence.items[at].text):
            text = " ".join([sentence.items[at].value, *(sentence.items[k].text for k in range(at + 1, last + 1))])
        else:
            text = " ".join(sentence.text[sentence.items[at].start : sentence.items[last].end].split())
        made.append(sentence.found("model", text, at, last))
        sentence.claim(at, last)
    for at in _at(sentence, "Z"):
        if (sentence.low(at + 1) not in _COUNTED or sentence.low(at + 1) in _PARAMETERS) and not made:
            made.append(sentence.found("model", sentence.items[at].value, at, at, 0.7))
    for match in sentence.find(r"N_?\?"):
        word = sentence.low(match.end() - 1)
        if word in ("billion", "bn", "trillion", "million") and not made:
            after = sentence.low(match.end()).lstrip("-")
            if after in _PARAMETERS or after in ("model", "-"):
                letter = {"billion": "B", "bn": "B", "trillion": "T", "million": "M"}[word]
                made.append(
                    sentence.found(
                        "model", f"{sentence.items[match.start()].text}{letter}", match.start(), match.end() - 1, 0.6
                    )
                )
    for match in sentence.find(r"m[=:][\"]?([?MAS@])"):
        at = match.start(1)
        if not made:
            made.append(sentence.found("model", sentence.items[at].text, at, at))
    return made


def _belongs(sentence: Sentence, first: int, at: int) -> bool:
    """Whether the next item is a part of the model's name."""
    gap = sentence.text[sentence.items[at - 1].end : sentence.items[at].start]
    letter, low, after = sentence.letter(at), sentence.low(at), sentence.letter(at + 1)
    if gap not in ("", " "):
        return False
    if letter == "Z":
        return sentence.low(at + 1) not in ("tokens", "token")
    if letter == "N":
        return (
            after not in ("n", "g", "G", "t", "P", "U", "x", "T", "p", "H", "_", "S")
            and not isinstance(sentence.items[at].value, bool)
            and 0 < float(sentence.items[at].value) < 1000
            and sentence.letter(at - 1) != "Z"
            and not (after == "?" and sentence.letter(at + 2) == "n")
        )
    if letter == "/" and gap == "":
        return after == "N" and sentence.text[sentence.items[at].end : sentence.items[at + 1].start] == ""
    if letter == "_" and gap == "":
        return after in ("N", "Z", "?")
    if letter == "?":
        return low in _VARIANTS or (sentence.letter(at - 1) == "_" and gap == "" and low in _VARIANTS)
    return False


_VARIANTS = frozenset(
    "tiny mini small base medium large xl xxl xs huge giant nano instruct chat uncased cased v1 v2 v3 turbo b l "
    "h g".split()
)


def frameworks(sentence: Sentence) -> list[Found]:
    """Values of ``framework`` and ``launcher`` (torchrun, or the site's own)."""
    made = [sentence.found("framework", sentence.items[at].value, at, at) for at in _at(sentence, "F")]
    for at in _at(sentence, "L"):
        made.append(sentence.found("launcher", sentence.items[at].value, at, at))
        if sentence.items[at].value == "torchrun":
            made.append(sentence.found("framework", "pytorch", at, at))
    return made


def paradigms(sentence: Sentence) -> list[Found]:
    """Values of ``paradigm`` (one technique each), degrees ``tp``, ``pp``, ``dp``, and ``backend``."""
    made: list[Found] = []
    for at in range(len(sentence.items)):
        letter, item = sentence.letter(at), sentence.items[at]
        if letter == "B":
            made.append(sentence.found("backend", item.value, at, at))
        elif letter == "N" and item.low == "zero" and sentence.letter(at + 1) not in tuple("ngGtPU"):
            stage = sentence.letter(at + 1) == "N" and sentence.items[at + 1].value in (1, 2, 3)
            if (
                stage
                or item.text == "ZeRO"
                or sentence.low(at - 1) in ("deepspeed", "with", "using")
                or sentence.letter(at - 1) == "F"
            ):
                made.append(
                    sentence.found(
                        "paradigm", f"zero{sentence.items[at + 1].value}" if stage else "zero", at, at + stage
                    )
                )
        elif letter == "A":
            made += _technique(sentence, at)
    for match in sentence.find(r"\?(?=[=:,]?)"):
        at = match.start()
        low = sentence.low(at).replace("_", "-")
        for name in ("tp", "pp", "dp"):
            if low.startswith(name) and low[2:].lstrip("-").isdecimal():
                value = int(low[2:].lstrip("-"))
                made += [sentence.found("paradigm", name, at, at), sentence.found(name, value, at, at)]
    for match in sentence.find(r"d[=:i]{0,2}\"?(\?)"):
        at = match.start(1)
        if not any(f.field == "paradigm" for f in made) and sentence.letter(at - 1) in ("=", ":", '"'):
            made.append(sentence.found("paradigm_unknown", sentence.items[at].text, at, at, 0.8))
    for match in sentence.find(r"F[ai,]{0,2}\?N|\?N"):  # "stage 3" beside DeepSpeed
        at = match.end() - 2
        if sentence.low(at) in ("stage", "stage-") and any(
            s.letter == "F" and s.value == "deepspeed" for s in sentence.items
        ):
            number = sentence.items[at + 1].value
            if number in (1, 2, 3):
                made.append(sentence.found("paradigm", f"zero{number}", at, at + 1))
    return made


def _technique(sentence: Sentence, at: int) -> list[Found]:
    item = sentence.items[at]
    made = [sentence.found("paradigm", item.value, at, at)]
    if item.value in ("tp", "pp", "dp"):
        here = at + 1
        while sentence.letter(here) in ("=", ":", "i", "o", "_") and here < at + 4:
            here += 1
        if sentence.letter(here) == "N" and sentence.letter(here + 1) not in tuple("ngGtPUH"):
            made.append(sentence.found(str(item.value), sentence.items[here].value, here, here))
            sentence.claim(here, here)
        elif sentence.letter(at - 1) == "N" or (
            sentence.letter(at - 1) in "_?"
            and sentence.letter(at - 2) == "N"
            and sentence.low(at - 1) in ("-", "way", "-way")
        ):
            back = at - 1 if sentence.letter(at - 1) == "N" else at - 2
            made.append(sentence.found(str(item.value), sentence.items[back].value, back, back))
            sentence.claim(back, back)
        elif sentence.low(at - 1) == "way" and sentence.letter(at - 3) == "N":
            made.append(sentence.found(str(item.value), sentence.items[at - 3].value, at - 3, at - 3))
            sentence.claim(at - 3, at - 3)
    return made


def precisions(sentence: Sentence) -> list[Found]:
    """Values of ``precision`` and ``gpu`` (the kind of GPU that was named)."""
    made = [sentence.found("precision", sentence.items[at].value, at, at) for at in _at(sentence, "R")]
    return made + [sentence.found("gpu", sentence.items[at].value, at, at) for at in _at(sentence, "G")]


def _at(sentence: Sentence, letter: str) -> list[int]:
    return [at for at, each in enumerate(sentence.letters) if each == letter]
