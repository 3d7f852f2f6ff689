"""The user's program and its arguments, as one piece of the text."""

from __future__ import annotations

import re

from maple_parsl.extraction.sentence import Found, Sentence

_SCRIPT = re.compile(r"\.(py|sh|bash|slurm|sbatch|pbs|lsf|csh)$", re.I)
_LAUNCH = frozenset(
    "run launch start submit execute python python3 torchrun script file program train deepspeed".split()
)
# Options of launchers and schedulers and of Maple itself: never the program's, wherever they stand in words.
OURS = frozenset(
    "--site --nodes --walltime --account --queue --partition --qos --gpus-per-node --time -A -N -t -q --ntasks-per-node"
    " --gres --model --paradigm --script --project --precision --conda --venv".split()
)
_TAKES = frozenset({"which", "takes", "accepts", "expects"})
_DASHES = re.compile(r"(?:^|\s)--\s+(?=-{0,2}\w)")
_QUOTE = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
_WORD = re.compile(r"(?:'[^'\n]*'|\"[^\"\n]*\"|[^\s'\"`,;]|[,;](?=[^\s]))+")
_VALUE = re.compile(r"-?\d[\w.e+-]*$|[\w./~-]*[/._=][\w./~=-]*$|'|\"|True$|False$|[a-z_]+=", re.I)


def programs(sentence: Sentence, common: frozenset[str]) -> list[Found]:
    """Values of ``script`` and ``args``; what they take up is read for nothing else."""
    made: list[Found] = []
    scripts = [at for at, item in enumerate(sentence.items) if item.letter == "@" and _SCRIPT.search(item.text)]
    labelled = _labelled_args(sentence, common)
    if labelled:
        made.append(labelled)
        scripts = [at for at in scripts if not labelled.first <= at <= labelled.last]
    taken: list[int] = []
    for at in scripts:
        if any(first <= at <= last for first, last in ((f.first, f.last) for f in made if f.field == "args")):
            continue
        if at in taken or sentence.items[at].low.startswith("http"):
            continue
        taken.append(at)
        stated = sentence.letter(at - 1) in ("k", "=", ":") or any(sentence.low(at - k) in _LAUNCH for k in (1, 2))
        negated = sentence.letters[at] == "0"
        if not negated:
            made.append(sentence.found("script", sentence.items[at].text, at, at, 1.0 if stated else 0.9))
        if not negated and not labelled and (args := _following(sentence, at, common)):
            made.append(args)
    after = None if any(each.field == "args" for each in made) else _DASHES.search(sentence.text)
    if after and (args := _run(sentence, _item_at(sentence, after.end()), common, all_theirs=True)):
        made.append(args)
    for found in made:
        sentence.claim(found.first, found.last)
    return made


def _labelled_args(sentence: Sentence, common: frozenset[str]) -> Found | None:
    for at, item in enumerate(sentence.items):
        if item.letter == "r":
            start = at + 1
            while sentence.letter(start) in ("=", ":", "i") or (
                sentence.letter(start) == '"' and sentence.letter(start + 1) == "-"
            ):
                start += 1
            if sentence.letter(start) == "-" or (sentence.letter(start) == "?" and sentence.letter(start + 1) == "="):
                return _run(sentence, start, common)
    return None


def _following(sentence: Sentence, at: int, common: frozenset[str]) -> Found | None:
    start = at + 1
    while sentence.low(start) in _TAKES or (
        sentence.letter(start) in ("o", "i", "r", '"', ",", ":") and sentence.low(start) != "on"
    ):
        start += 1
    if sentence.low(start) in ("--",) or sentence.letter(start) == "-":
        return _run(sentence, start, common)
    if start == at + 1 and sentence.letter(start) == "?" and sentence.letter(start + 1) == "-":
        return None if sentence.low(start) in common else _run(sentence, start, common, positional=True)
    if start == at + 1 and (
        sentence.letter(start) == "@" or (sentence.letter(start) in "?kmdbcuj" and sentence.letter(start + 1) == "=")
    ):
        return _run(sentence, start, common)
    return None


def _run(
    sentence: Sentence, start: int, common: frozenset[str], positional: bool = False, all_theirs: bool = False
) -> Found | None:
    """From the first option to the end of the last value, as it stands in the text."""
    text, items = sentence.text, sentence.items
    place = items[start].start
    end, words, option = place, 0, False
    all_ours = all_theirs
    while match := _WORD.match(text, _skip(text, place)):
        if words and text[end : match.start()].strip(" \t"):
            break  # a comma or a line break ended the arguments
        word = match.group().rstrip(".?!:)") or match.group()
        flag = word.startswith("-") and not re.match(r"-\d", word)
        if flag and word.split("=")[0] in OURS and not all_ours:
            break
        if word == "--":
            place, end = match.end(), match.end()
            start, all_ours, option = _item_at(sentence, _skip(text, place)), True, False
            continue
        if flag:
            option = "=" not in word
        elif (
            (positional and not words)
            or (option and not _english(sentence, word, match.start(), common))
            or (not option and (_VALUE.match(word) and not _english(sentence, word, match.start(), common)))
        ):
            option = False
        else:
            break
        words += 1
        end = match.start() + len(word)
        place = match.end()
        ended = match.group()[len(word) :].strip(":)")
        if ended and not text[place : place + 1].strip(" "):
            break
        if text[end : end + 1] in (",", ";") or text[place : place + 1] in (",", ";"):
            break
    if not words or start >= len(items) or items[start].start >= end:  # nothing stands behind a "--"
        return None
    last = max(k for k in range(start, len(items)) if items[k].start < end)
    begin = items[start].start
    value = text[begin:end]
    return Found("args", value, start, last, 0.9) if value.strip() else None


def _english(sentence: Sentence, word: str, place: int, common: frozenset[str]) -> bool:
    """Whether a word goes on with the request rather than with the arguments."""
    low = word.lower()
    at = _item_at(sentence, place)
    letter = sentence.items[at].letter if at < len(sentence.items) else ""
    if low in common or letter in "oyaqSwT!~f|":
        return True
    if letter in "DC":
        return True
    if letter == "N" and at + 1 < len(sentence.items):
        return sentence.items[at + 1].letter in "ngGtPUHSx_" and sentence.items[at].end == place + len(word)
    return False


def _item_at(sentence: Sentence, place: int) -> int:
    return next((k for k, item in enumerate(sentence.items) if item.end > place), len(sentence.items))


def _skip(text: str, place: int) -> int:
    while place < len(text) and text[place] in " \t`":
        place += 1
    return place
