"""Tokens → items, each with the letter of its part of speech, so that the grammar is patterns over letters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from maple_parsl.extraction.clock import seconds_of_clock, seconds_of_span
from maple_parsl.extraction.names import model_name
from maple_parsl.extraction.numbers import merged
from maple_parsl.extraction.tables import cells
from maple_parsl.extraction.tokens import Token, tokens
from maple_parsl.extraction.typos import meant, mended_phrase
from maple_parsl.extraction.vocabulary import Vocabulary, plain

# Known as phrases, and of no further meaning here.
_OTHER = frozenset(
    "node hours|node hour|gpu hours|gpu hour|cpu hours|core hours|service units|batch size|micro batch size"
    "|global batch"
    "|local batch size|login node|login nodes|head node|multi node|multi gpu|per gpu|learning rate|time step|time steps"
    "|real time|first time|this time|next time|in time|on time|some time|long time|a lot of time|data loader"
    "|data loaders|dataloader workers|num workers|on call|project directory|project dir|project folder|batch script"
    "|batch job|batch jobs|job script|code base|debug mode|debug level|debug logs|debug output|debug info|debug flag"
    "|per day|a day ago|per hour|an hour ago|per week|days ago|hours ago|one more time|at a time|each time|for now"
    "|gpu memory|gpu nodes|all reduce|all good|no rush|no worries|no idea|no problem|no hurry|no matter|not sure"
    "|not urgent|why not|no doubt|if not|or not|cluster admins|no longer needed|no thanks|no big deal|no one"
    "|whether or not"
    "|mixed precision training|for example|for instance|all set|all right|all hands|after all|first of all|at "
    "all|all runs|in all cases|hi all|hello all|thanks all|dear all|over here"
    "|right now|from now on|from scratch|from home|from here|host memory|file system|file systems|flash attention"
    "|time series|run time error|rank 0|rank 1|host name|port forwarding|not only|nothing|no queue|no partition".split(
        "|"
    )
)
_KEEP = {"gpu nodes": "n"}
_PLACED = frozenset({"on", "at", "onto", "in", "using", "for"})
_SHORT_SITES = frozenset(
    {
        "here",
        "this machine",
        "this computer",
        "pm",
        "s3",
        "local",
        "laptop",
        "workstation",
        "comet",
        "titan",
        "bridges",
        "fir",
        "cedar",
        "graham",
        "alps",
        "andes",
        "isambard",
        "theta",
        "jupiter",
        "swing",
        "greene",
        "improv",
        "leonardo",
        "beluga",
    }
)
_MARKS = {"-": "_", "–": "_", "—": ";", "×": "x", "*": "x", "@": "o", "&": "y", "`": '"', "'": '"', "“": '"', "”": '"',
          "|": "%", "#": "%", "!": "."}  # fmt: skip
_SUFFIXES = frozenset({"based", "style", "like", "only", "enabled", "wrapped", "powered", "sized"})


@dataclass(frozen=True, slots=True)
class Item:
    """A piece of the request. ``letter``: its part of speech; ``value``: its meaning; ``sure``: 0 to 1."""

    letter: str
    value: Any
    text: str
    low: str
    start: int
    end: int
    sure: float = 1.0


def items(text: str, vocabulary: Vocabulary) -> list[Item]:
    """The items of a text, in order. Letter ``?`` is a word that the vocabulary does not have."""
    pieces = tokens(text)
    made: list[Item] = []
    at = 0
    while at < len(pieces):
        item, used = _phrase(text, pieces, at, vocabulary) or (None, 0)
        if item is None and pieces[at].low == "n" and at and pieces[at - 1].end == pieces[at].start:
            made.append(Item("n", "node", pieces[at].text, "n", pieces[at].start, pieces[at].end))
            used = 1
        elif item is None:
            made.extend(_single(pieces[at], vocabulary, made))
            used = 1
        else:
            made.append(item)
        at += used
    return _sites_in_place(merged(cells(text, made)))


def _phrase(text: str, pieces: list[Token], at: int, vocabulary: Vocabulary) -> tuple[Item, int] | None:
    first = pieces[at]
    if first.sort not in ("word", "number", "span", "mark") or (first.sort == "mark" and first.text not in "&/"):
        return None
    for used in range(min(6, len(pieces) - at), 0, -1):
        last = pieces[at + used - 1]
        if last.end - first.start > 60 or last.sort in ("flag", "file") or (used > 1 and last.text == "."):
            continue
        if used == 1 and first.sort in ("number", "span"):
            return None
        key = plain(text[first.start : last.end]).replace("’", "'")
        if key.endswith(("'s", ".")):
            key = key.removesuffix(".").removesuffix("'s")
        entry = (_KEEP.get(key, "z"), key) if key in _OTHER else vocabulary.entries.get(key)
        if entry is None and used > 1 and (mended := mended_phrase(key, vocabulary)):
            return Item(
                *vocabulary.entries[mended], text[first.start : last.end], mended, first.start, last.end, 0.8
            ), used
        if entry is not None:
            words = text[first.start : last.end]
            return Item(entry[0], entry[1], words, key, first.start, last.end), used
    return None


def _single(token: Token, vocabulary: Vocabulary, before: list[Item]) -> list[Item]:
    def item(letter: str, value: Any = None, sure: float = 1.0) -> Item:
        return Item(letter, value, token.text, token.low, token.start, token.end, sure)

    match token.sort:
        case "line":
            return [item("\n")]
        case "flag":
            return [item("-")]
        case "file":
            return [item("F" if token.low in vocabulary.entries else "@")]
        case "number":
            number = float(token.text.replace(",", ""))
            return [item("N", int(number) if number == int(number) and "." not in token.text else number)]
        case "clock":
            return [item("C", seconds_of_clock(token.text))]
        case "span":
            return [item("D", seconds_of_span(token.low))]
        case "size":
            return [item("Z", token.text)]
        case "times":
            return [item("x")]
        case "mark":
            return [item(_MARKS.get(token.text, token.text))]
        case "cjk":
            return _run(token, vocabulary)
    return _word(token, vocabulary, before)


def _word(token: Token, vocabulary: Vocabulary, before: list[Item]) -> list[Item]:
    def item(letter: str, value: Any = None, sure: float = 1.0) -> Item:
        return Item(letter, value, token.text, token.low, token.start, token.end, sure)

    if name := model_name(token.text, vocabulary):
        return [item("M", name[0], name[1])]
    parts = plain(token.low).split()
    entries = vocabulary.entries
    if len(parts) > 1:
        known = [entries.get(part) for part in parts]
        if all(each is not None and each[0] == "#" for each in known) and "-" in token.low:
            return [replace(item("#", each[1]), low=part) for each, part in zip(known, parts, strict=True) if each]
        if known[0] and known[-1] and known[0][0] == "#" and known[-1][0] in "ngUtP":
            cut = token.start + len(parts[0])
            head = Item("#", known[0][1], parts[0], parts[0], token.start, cut)
            return [head, Item(known[-1][0], known[-1][1], parts[-1], parts[-1], cut + 1, token.end)]
        if known[0] and (parts[-1] in _SUFFIXES or known[0][0] == "G"):
            return [item(*known[0])]
        if known[0] and known[-1] and known[0][0] in "SG" and known[-1][0] in "ng":
            return [item(*known[0]), item(*known[-1])]
    if "." in token.low and (entry := entries.get(token.low.split(".", 1)[0])) and entry[0] == "S":
        return [item(*entry)]
    last = next((each for each in reversed(before) if each.letter not in "=:"), None)
    named = last is not None and last.letter in "aqjuE"  # a name follows, however it is spelt
    after_number = last is not None and last.letter in "N#"
    if not named and (near := meant(token.low, vocabulary, after_number=after_number)):
        letter, value = entries[near]
        return [item(letter, value, 0.8)]
    return [item("?")]


def _run(token: Token, vocabulary: Vocabulary) -> list[Item]:
    """A run of Chinese or Japanese, which has no blanks: the longest known words in it."""
    made, at = [], 0
    while at < len(token.text):
        for length in range(6, 0, -1):
            piece = token.text[at : at + length]
            if entry := vocabulary.entries.get(piece):
                start = token.start + at
                made.append(Item(entry[0], entry[1], piece, piece, start, start + len(piece)))
                break
        at += length
    return made


def _sites_in_place(found: list[Item]) -> list[Item]:
    """A site's name that is also a common word counts where a place is meant."""
    made: list[Item] = []
    for at, item in enumerate(found):
        if item.letter == "S":
            before = found[at - 1] if at else None
            after = found[at + 1] if at + 1 < len(found) else None
            if after and after.low in ("model", "models", "llm", "llms", "lab", "labs", "optics"):
                item = replace(item, letter="?")
            elif item.low in _SHORT_SITES:
                placed = before is not None and (
                    before.low in _PLACED or before.letter in "s=:n" or before.low in ("my", "this")
                )
                alone = item.low == "local" and (after is None or after.letter in ",.;\nNC" or after.low == "--")
                if not (placed or alone) or (
                    after is not None and after.low in ("disk", "scratch", "batch", "rank", "copy", "bucket")
                ):
                    item = replace(item, letter="?")
        made.append(item)
    return made
