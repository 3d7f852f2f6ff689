"""Names that people give with a label: account, queue, job name, environment, port."""

from __future__ import annotations

import re

from maple_parsl.extraction.sentence import Found, Sentence
from maple_parsl.extraction.vocabulary import Vocabulary

_NAME = re.compile(r"[A-Za-z0-9][\w@+-]*(?:\.[\w@+-]+)*")
_PATH = re.compile(r"[\w~$/][\w./~$:@+-]*")
_TERSE = frozenset("account acct acc proj prj alloc charge bill bank -a --account a cuenta proyecto".split())
_KINDS = frozenset(
    "research phd thesis class new side final ml ai big small current ongoing joint pilot course student summer "
    "bert gpt"
    " llm climate-model this that same other next first main test own whole large group lab team science dl hpc "
    "discretionary"
    " director's default usual regular shared".split()
)
# How sites write the accounts they hand out; a word of this form is one, without a label too.
_FORMS = re.compile(
    r"m\d{3,4}(?:_g)?|project_\d{5,}|[A-Z]{4}\d{4}|[a-z]{3}\d{3}|[A-Z]{3}\d{3}|[a-z]{4}-(?:delta-gpu|dtai-gh)|[A-Z]{3}\d{6}"
    r"|[a-z]{3,5}\d{6}(?:-gpu|-ai|p)?|[\w]+-(?:delta-gpu|dtai-gh)|ALCF\w+|tg-[a-z]{3}\d{6}|\w+_(?:aesp|CNDA)",
)
_FOR_SITE = {"perlmutter": re.compile(r"m\d{1,5}(?:_g)?")}
_CALLED = ("called", "named", "name", "id", "code", "number", "is", "=", ":")


def labelled(sentence: Sentence, vocabulary: Vocabulary, queues: tuple[str, ...], site: str | None) -> list[Found]:
    """Values of ``queue``, ``account``, ``name``, ``conda``, ``venv``, ``container`` and ``port``."""
    found = [*_queues(sentence, vocabulary, queues)]
    for each in found:
        sentence.claim(each.first, each.last)
    found += _others(sentence, vocabulary)
    accounts = _accounts(sentence, vocabulary)
    for each in accounts:
        sentence.claim(each.first, each.last)
    if not accounts:
        accounts = _bare_accounts(sentence, site)
        for each in accounts:
            sentence.claim(each.first, each.last)
    found += accounts
    if not any(each.field == "queue" for each in found):
        found += _bare_queues(sentence, queues)
    return found


def _after(sentence: Sentence, at: int) -> tuple[int, bool]:
    """The item behind a label, past fillers; whether a sign or ``is`` made it explicit."""
    explicit, here = False, at + 1
    if (
        sentence.letter(here) == "("
        and sentence.letter(here + 2) == ")"
        and sentence.letter(here + 1) in "?M"
        and sentence.low(here + 1).isalnum()
    ):
        return here + 1, False
    while here < len(sentence.items) and (
        sentence.letter(here) in ("=", ":", '"', "_")
        or (sentence.letter(here) == "," and sentence.low(here + 1) in ("is", "it", "which"))
        or sentence.low(here) in _CALLED
        or sentence.low(here)
        in ("the", "my", "our", "our's", "should", "must", "be", "will", "to", "it", "which", "use")
    ):
        explicit |= sentence.letter(here) in ("=", ":") or sentence.low(here) in ("is", "called", "named")
        here += 1
    return here, explicit


def _name(sentence: Sentence, at: int) -> tuple[str, int] | None:
    """The identifier that starts at an item, and its last item; it may be several tokens without blanks."""
    if at >= len(sentence.items):
        return None
    start = sentence.items[at].start
    match = _NAME.match(sentence.text, start)
    if match is None:
        return None
    text = match.group().rstrip(".-+")
    last = at
    while last + 1 < len(sentence.items) and sentence.items[last + 1].start < start + len(text):
        last += 1
    return (text, last) if text else None


def _accounts(sentence: Sentence, vocabulary: Vocabulary) -> list[Found]:
    made: list[Found] = []
    for at, item in enumerate(sentence.items):
        label = sentence.letter(at) == "a" or (item.text in ("A", "-A") and sentence.letter(at + 1) == "=")
        if not label:
            continue
        here, explicit = _after(sentence, at)
        forward = _name(sentence, here)
        if forward and sentence.letter(here) == "a" and not explicit and len(forward[0]) > 2:
            continue  # "bill it to the project x": the next label has the name
        terse = item.low in _TERSE or explicit
        if forward and _is_account(sentence, here, forward[0], vocabulary, terse, explicit):
            made.append(sentence.found("account", forward[0], here, forward[1], 1.0 if terse else 0.9))
            continue
        if at and (back := _before(sentence, at, vocabulary)):
            made.append(back)
    for at, item in enumerate(sentence.items):
        if (
            not made
            and item.low in ("under", "against", "to")
            and sentence.low(at - 1) in ("charge", "charged", "bill", "billed", "run", "submit")
        ):
            forward = _name(sentence, at + 1)
            if forward and sentence.letter(at + 1) == "?" and forward[0].lower() not in vocabulary.common:
                made.append(sentence.found("account", forward[0], at + 1, forward[1], 0.7))
    return made


def _is_account(sentence: Sentence, at: int, name: str, vocabulary: Vocabulary, terse: bool, explicit: bool) -> bool:
    low, letter = name.lower(), sentence.letter(at)
    if low in ("tbd", "none", "null", "unknown", "n/a", "na", "?"):
        return False
    if low in vocabulary.common:
        return (
            explicit
            and low not in ("the", "my", "is", "a", "on", "not", "unknown", "none", "at", "for", "in", "default")
            and False
        )
    if letter == "i":
        return terse and len(name) == 1
    if letter in ("?", "Z", "q", "a", "x", "U", "M", "|", "y", "R"):
        return True
    if letter == "N":
        return explicit or len(name) > 4 or not name.isdecimal()
    return explicit or (terse and letter in "GgAFmdbcTkS")


def _before(sentence: Sentence, at: int, vocabulary: Vocabulary) -> Found | None:
    """``the climate_ai allocation``: the name stands before the label."""
    first = at - 1
    while (
        first > 0
        and sentence.items[first - 1].end == sentence.items[first].start
        and sentence.letter(first - 1) not in ('"', ",", "(", ":", "=")
    ):
        first -= 1
    if sentence.letter(at - 1) == '"':
        first = at - 2
    item = sentence.items[first]
    found = _name(sentence, first)
    if found is None or sentence.letter(first) not in "?M" or found[0].lower() in vocabulary.common:
        return None
    low = found[0].lower()
    marked = not low.isalpha() or not (found[0].islower() or found[0].isupper() or found[0].istitle())  # ModelOps
    pointed = sentence.low(first - 1) in (
        "my",
        "our",
        "the",
        "under",
        "on",
        "from",
        "using",
        "with",
        "against",
        '"',
        "`",
        "'",
    )
    if (marked and low not in _KINDS) or (
        pointed and low not in _KINDS and item.letter == "?" and sentence.low(at) not in ("code",)
    ):
        return sentence.found("account", found[0], first, found[1], 0.8)
    return None


def _bare_accounts(sentence: Sentence, site: str | None) -> list[Found]:
    for at, item in enumerate(sentence.items):
        if sentence.letter(at) not in "?M" or item.low in ("gpt345", "opt125"):
            continue
        form = _FORMS.fullmatch(item.text) or (site in _FOR_SITE and _FOR_SITE[site].fullmatch(item.text))
        if form and sentence.letter(at) == "?":
            return [sentence.found("account", item.text, at, at, 0.8)]
    return []


def _known(text: str, queues: tuple[str, ...]) -> str | None:
    low = text.lower().replace("_", "-")
    return next((queue for queue in queues if queue.lower().replace("_", "-") == low), None)


def _queues(sentence: Sentence, vocabulary: Vocabulary, queues: tuple[str, ...]) -> list[Found]:
    from maple_parsl.extraction.typos import near

    made: list[Found] = []
    for at in range(len(sentence.items)):
        if sentence.letter(at) != "q":
            continue
        back = at - 1
        while back >= 0 and sentence.letter(back) in ('"', "'"):
            back -= 1
        word = sentence.items[back].text if back >= 0 else ""
        here, explicit = _after(sentence, at)
        forward = _name(sentence, here)
        if back >= 0 and (known := _known(word, queues)) and not (explicit and forward):
            made.append(sentence.found("queue", known, back, back))
        elif forward and (known := _known(forward[0], queues)):
            made.append(sentence.found("queue", known, here, forward[1]))
        elif forward and (slip := near(forward[0].lower(), [q.lower() for q in queues])) and len(forward[0]) > 4:
            made.append(sentence.found("queue", _known(slip, queues), here, forward[1], 0.8))
        elif back >= 0 and len(word) > 3 and (slip := near(word.lower(), [q.lower() for q in queues])):
            made.append(sentence.found("queue", _known(slip, queues), back, back, 0.8))
        elif forward and sentence.letter(here) in "?gGmMSaxZ" and _plausible(forward[0], vocabulary, queues, explicit):
            made.append(sentence.found("queue", forward[0], here, forward[1], 0.9 if explicit else 0.8))
        elif (
            back >= 0
            and sentence.letter(back) in "?gG"
            and _plausible(word, vocabulary, queues, False)
            and _NAME.fullmatch(word)
        ):
            made.append(sentence.found("queue", word, back, back, 0.7))
    return made


def _plausible(word: str, vocabulary: Vocabulary, queues: tuple[str, ...], explicit: bool) -> bool:
    low = word.lower()
    if low in vocabulary.common or low in (
        "slurm",
        "pbs",
        "job",
        "right",
        "correct",
        "wait",
        "same",
        "gpus",
        "long",
        "any",
        "that",
        "priority",
        "tbd",
    ):
        return False
    return explicit or len(low) > 1


# Names of queues that are words of their own count only where a queue is meant.
_WORDS = frozenset(
    "batch main gpu gpus shared extended interactive demand capacity h100 pvc gh ai gpu-debug standard small "
    "large test medium regular premium".split()
)
_SPOIL = frozenset(
    "my the this why mode script it info level log logs logging output flag run build print size job jobs model "
    "data part our a an".split()
)


def _bare_queues(sentence: Sentence, queues: tuple[str, ...]) -> list[Found]:
    for at, item in enumerate(sentence.items):
        last = re.split(r"[\s-]", item.text)[-1]
        if item.letter == "S" and len(last) < len(item.text) and (known := _known(last, queues)):
            return [sentence.found("queue", known, at, at, 0.7)]
        if sentence.letters[at] not in "?gGRVi" or not (known := _known(item.text, queues)):
            continue
        before, after = sentence.letter(at - 1), sentence.letter(at + 1)
        if item.low in _WORDS:
            placed = sentence.low(at - 1) in ("in", "on", "to", "into", "via", "through", "of")
            apart = (before in ',;\n"/S' or at == 0) and after in (",", ";", "\n", ".", "", "/", "D", "C")
            listed = before != "" and before in "nDCU" and after in ("D", "C", "N", "0", ",", "\n", ";", "")
            exact = item.text == known and not known.islower() and before != "" and before in ",S" and after == "N"
            apart = apart or listed or exact
            if item.low == "regular":
                apart = apart or before in ",SnUDC0"
            if not (apart or (placed and after in (",", ";", "\n", ".", "", "N", "D", "C", "o"))):
                continue
        if sentence.low(at + 1) in _SPOIL and sentence.low(at - 1) not in ("in", "queue", "to"):
            continue
        return [sentence.found("queue", known, at, at, 0.9)]
    return _slipped_queue(sentence, queues)


def _slipped_queue(sentence: Sentence, queues: tuple[str, ...]) -> list[Found]:
    """A misspelt queue where nothing but a name can stand: alone between two commas."""
    from maple_parsl.extraction.typos import near

    for at, item in enumerate(sentence.items):
        alone = sentence.letter(at - 1) in (",", ";", "\n") and sentence.letter(at + 1) in (",", ";", "\n", ".", "")
        if alone and sentence.letter(at) == "?" and len(item.low) > 4:
            slip = near(item.low, [queue.lower() for queue in queues])
            if slip is not None:
                return [sentence.found("queue", _known(slip, queues), at, at, 0.8)]
    return []


def _others(sentence: Sentence, vocabulary: Vocabulary) -> list[Found]:
    made: list[Found] = []
    for at in range(len(sentence.items)):
        letter = sentence.letter(at)
        if letter == "u":
            here, _ = _after(sentence, at)
            if sentence.letter(here) == "N":
                made.append(sentence.found("port", sentence.items[here].value, here, here))
                sentence.claim(at, here)
            elif sentence.letter(at - 1) == "N":
                made.append(sentence.found("port", sentence.items[at - 1].value, at - 1, at - 1))
        elif letter in "jE":
            here, explicit = _after(sentence, at)
            field = "name" if letter == "j" else str(sentence.items[at].value)
            if here >= len(sentence.items):
                continue
            match = (_NAME if letter == "j" else _PATH).match(sentence.text, sentence.items[here].start)
            word = match.group().rstrip(".,") if match else ""
            if not word or word.lower() in vocabulary.common or (letter == "j" and sentence.letter(here) not in "?MA"):
                continue
            if sentence.letter(here) not in "?M@/~ASFi." and not explicit:
                continue
            last = here
            while last + 1 < len(sentence.items) and sentence.items[last + 1].start < sentence.items[here].start + len(
                word
            ):
                last += 1
            made.append(Found(field, word, here, last, 0.9))
            sentence.claim(at, last)
    return made
