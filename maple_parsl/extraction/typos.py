"""What a misspelt word was meant as: one or two slips from a word of the vocabulary, and no word of its own."""

from __future__ import annotations

from collections.abc import Iterable

from maple_parsl.extraction.vocabulary import Vocabulary


def slips(word: str, known: Iterable[str]) -> list[str]:
    """The known words nearest to a word, within the slips allowed for its length (swapped letters are one slip)."""
    from rapidfuzz.distance import OSA

    allowed = 1 if len(word) < 7 else 2
    best: list[tuple[int, str]] = []
    for candidate in known:
        distance = OSA.distance(word, candidate, score_cutoff=allowed)
        if distance <= allowed and (distance < 2 or len(candidate) >= 7):
            best.append((distance, candidate))
    best.sort()
    return [candidate for distance, candidate in best if distance == best[0][0]]


def near(word: str, known: Iterable[str]) -> str | None:
    """The one known word that is nearest; None where there is none, or several."""
    found = slips(word, known)
    return found[0] if len(found) == 1 else None


def mended_phrase(phrase: str, vocabulary: Vocabulary) -> str | None:
    """The paradigm that some words name when one or two slips are put right; none of them may be known as it is."""
    words = phrase.split()
    if vocabulary.technical.isdisjoint(words):
        return None
    put: list[str] = []
    for word in words:
        right = word if word in vocabulary.technical else _slip(word, vocabulary)
        if right is None:
            return None
        put.append(right)
    made = " ".join(put)
    entry = vocabulary.entries.get(made)
    return made if entry is not None and entry[0] == "A" else None


def _slip(word: str, vocabulary: Vocabulary) -> str | None:
    if len(word) < 5 or not word.isalpha() or word in vocabulary.not_typos or word in vocabulary.entries:
        return None
    return near(word, vocabulary.technical)


def meant(word: str, vocabulary: Vocabulary, *, after_number: bool) -> str | None:
    """The entry a word was meant as; units only where a number stands before them."""
    entries = vocabulary.entries
    if len(word) < 4 or not word.isalpha() or (word in vocabulary.not_typos and not (after_number and word == "nods")):
        return None
    candidates = vocabulary.fuzzy.get(word[0], ())
    found = slips(word, [each for each in candidates if after_number or entries[each][0] not in "nUgP"])
    return found[0] if len({entries[each] for each in found}) == 1 else None
