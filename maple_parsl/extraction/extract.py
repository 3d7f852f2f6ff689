"""extract(words, catalogue) -> Reading: the grammar, put together."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from maple_parsl.extraction import checks, intent, kinds, labelled, options, programs, structured
from maple_parsl.extraction.counts import counts
from maple_parsl.extraction.facts import Facts, facts_of, place_facts
from maple_parsl.extraction.lexer import items
from maple_parsl.extraction.paradigm import paradigm
from maple_parsl.extraction.reading import MORE, REQUIRED, Issue, Reading, Value
from maple_parsl.extraction.safety import field_injection, injection
from maple_parsl.extraction.sentence import Found, Sentence
from maple_parsl.extraction.settle import present, settle
from maple_parsl.extraction.shape import shape
from maple_parsl.extraction.statement import family, own_paradigm
from maple_parsl.extraction.times import times
from maple_parsl.extraction.tokens import LONGEST
from maple_parsl.extraction.vocabulary import Vocabulary, vocabulary
from maple_parsl.request import PARADIGMS

if TYPE_CHECKING:
    from maple_parsl.catalogue import Catalogue

_SHOWN = (*REQUIRED, "model", "paradigm", "framework", "gpus_per_node", "queue", "args", "precision", *MORE)


def extract(words: str, catalogue: Catalogue) -> Reading:
    """Read a request; never fails on any text, never invents a value.

    Args:
        words: plain words, JSON, YAML, or a pasted ticket; the first 20000 characters are read.
        catalogue: whose sites, aliases and queues are known.
    """
    words = words.encode("utf-8", "replace").decode("utf-8")
    known = vocabulary(tuple((name, aliases) for name, aliases in catalogue.aliases().items()))
    if found := structured.structured(words[:LONGEST]):
        return _from_fields(words, *found, catalogue, known)
    diagnose = intent.asks_for_a_cause(words[:LONGEST])
    if not diagnose and (refused := injection(words[:LONGEST])):
        return Reading(words, errors=(refused,))
    return _from_words(words, catalogue, known, diagnose)


def _from_words(words: str, catalogue: Catalogue, known: Vocabulary, diagnose: bool) -> Reading:
    errors: list[Issue] = []
    warnings: list[Issue] = []
    sentence = Sentence(words, items(words, known))
    sites = frozenset(name for name, entry in known.entries.items() if entry[0] == "S")
    found: list[Found] = programs.programs(sentence, known.common)
    found += options.options(sentence, sites)
    found += kinds.sites(sentence, known)
    site = _site(sentence, found)
    facts = _facts(site, None, None, catalogue, known)
    found += labelled.labelled(sentence, known, facts.queues if facts else (), site)
    found += times(sentence)
    found += kinds.models(sentence)
    found += kinds.precisions(sentence)
    found += kinds.frameworks(sentence)
    found += kinds.paradigms(sentence)
    found += [sentence.found("cpu_only", 0, match.start(), match.start()) for match in sentence.find("O")]
    found += counts(sentence)
    stated = settle(sentence, found, errors)
    values = {name: value for name, value in stated.items() if value.value is not None}
    one_node = "nodes" not in values or values["nodes"].value == 1
    single = one_node and "gpus_plain" in values and values["gpus_plain"].value == 1
    values |= paradigm(sentence, present(found), single)
    _launchers(sentence, found, errors)
    if len(words) > LONGEST:
        warnings.append(
            Issue("INVALID_VALUE", f"only the first {LONGEST} characters were read", "state the launch in fewer words")
        )
    _vague(found, stated, sentence, warnings)
    return _finished(words, values, catalogue, known, errors, warnings, diagnose)


def _from_fields(words: str, raw: dict[str, Any], language: str, catalogue: Catalogue, known: Vocabulary) -> Reading:
    if refused := field_injection(raw, words):
        return Reading(words, errors=(refused,))
    values, errors, unused = structured.fields(raw, words, language)
    warnings = [
        Issue("INVALID_VALUE", f"nothing was read from {name!r}", "it is no field of a request") for name in unused
    ]
    for name, letter in (("site", "S"), ("precision", "R"), ("framework", "F")):
        if name in values:
            entry = known.entries.get(
                " ".join(str(values[name].value).lower().replace("-", " ").replace("_", " ").split())
            )
            if entry and entry[0] == letter:
                values[name] = Value(entry[1], values[name].start, values[name].end)
            elif name == "site":
                values["site_unknown"] = values.pop("site")
    if "command" in values:
        values.setdefault("script", values.pop("command"))
    if "paradigm" in values:
        _named_paradigm(values, known)
    elif "framework" in values:
        _named_paradigm(values, known, str(values["framework"].value))
    if (gpus := values.pop("gpus_per_node", None)) is not None:
        values["gpus"] = gpus
    return _finished(words, values, catalogue, known, errors, warnings, False)


def _named_paradigm(values: dict[str, Value], known: Vocabulary, text: str | None = None) -> None:
    """The paradigm of a field, read by the same grammar as words."""
    value = values.get("paradigm") or values["framework"]
    named = f"{text or value.value} {values['framework'].value if 'framework' in values and not text else ''}"
    sentence = Sentence(named, items(named, known))
    found = [*kinds.frameworks(sentence), *kinds.paradigms(sentence)]
    for name, made in paradigm(sentence, found, False).items():
        if name != "framework" or "framework" not in values:
            values[name] = Value(made.value, value.start, value.end, made.confidence, made.basis, made.why)
    for each in found:
        if each.field in ("tp", "pp", "dp"):
            values.setdefault(each.field, Value(each.value, value.start, value.end))
    if (
        not any(each.field == "paradigm" for each in found)
        and text is None
        and not any(each.field == "framework" for each in found)
    ):
        values["paradigm_unknown"] = values.pop("paradigm")


def _finished(
    words: str,
    values: dict[str, Value],
    catalogue: Catalogue,
    known: Vocabulary,
    errors: list[Issue],
    warnings: list[Issue],
    diagnose: bool,
) -> Reading:
    def say(name: str) -> str | None:
        return str(values[name].value) if name in values else None

    if "site_unknown" in values:
        values["site"] = values.pop("site_unknown")
        if not diagnose:
            errors.append(
                Issue(
                    "UNKNOWN_SITE",
                    f"no site {values['site'].value!r} is known",
                    "maple sites lists them; a site file of yours adds one (maple sites add)",
                    values["site"].start,
                    values["site"].end,
                )
            )
    if "paradigm_unknown" in values:
        values["paradigm"] = values.pop("paradigm_unknown")
        errors.append(
            Issue(
                "UNKNOWN_PARADIGM",
                f"no paradigm {values['paradigm'].value!r} is known",
                f"known here: {', '.join(PARADIGMS)}; with a script of yours any of them may stay unstated",
                values["paradigm"].start,
                values["paradigm"].end,
            )
        )
    facts = _facts(say("site"), say("queue"), say("gpu"), catalogue, known)
    if diagnose:
        keep = {name: value for name, value in values.items() if name in ("site", "script", "nodes")}
        cause = intent.cause_class(words)
        if "gpus" in values and isinstance(values["gpus"].value, int):
            keep["gpus_per_node"] = values["gpus"]
        return Reading(words, keep, (), tuple(warnings), (cause,) if cause else (), "diagnose")
    shaped = shape(values, facts, errors, warnings)
    if values.get("nodes") is not None and "nodes" not in shaped:
        del values["nodes"]
    values |= shaped
    _time(values, facts, errors)
    if facts is not None:
        checks.limits(values, facts, errors, warnings)
        checks.account_form(values, facts, warnings)
        if facts.retired:
            text = f"{facts.title} is retired" + (
                f": {facts.site.status_note}" if facts.site and facts.site.status_note else ""
            )
            warnings.append(
                Issue(
                    "SCHED_DIALECT",
                    text,
                    "name a site that runs (maple sites)",
                    values["site"].start,
                    values["site"].end,
                )
            )
        elif facts.site is None:
            warnings.append(
                Issue(
                    "UNKNOWN_SITE",
                    f"there is no site file for {values['site'].value}",
                    "maple sites add makes one",
                    values["site"].start,
                    values["site"].end,
                )
            )
    checks.precision(values, say("gpu") or (facts.gpu if facts else None), known, errors, warnings)
    checks.parallel(values, errors)
    checks.port(values, errors)
    if "walltime" in values:
        seconds = values.pop("walltime")
        minutes = -(-float(seconds.value) // 60) if float(seconds.value) % 60 else float(seconds.value) // 60
        values["walltime_min"] = Value(
            int(minutes), seconds.start, seconds.end, seconds.confidence, seconds.basis, seconds.why
        )
    shown = {name: values[name] for name in _SHOWN if name in values}
    if not errors and intent.is_fragment({name for name, value in shown.items() if value.basis == "stated"}, words):
        errors.append(
            Issue(
                "NEEDS_CONTEXT",
                "this states too little to be a launch by itself",
                "say what to train, where, on how many nodes, for how long, and the account",
            )
        )
    return Reading(words, shown, _missing(shown, facts), tuple(warnings), tuple(errors))


def _time(values: dict[str, Value], facts: Facts | None, errors: list[Issue]) -> None:
    time = values.get("walltime")
    if time is None:
        return
    if time.value == "longest":
        nodes = values.get("nodes")
        longest = checks.longest_walltime(facts, nodes.value if nodes and isinstance(nodes.value, int) else None)
        del values["walltime"]
        if longest is not None and facts is not None and facts.queue is not None:
            values["walltime"] = Value(
                longest, time.start, time.end, 0.9, "follows", f"the most that queue {facts.queue.name} allows"
            )
    elif not 0 < float(time.value) <= 366 * 86400:
        errors.append(
            Issue(
                "INVALID_VALUE",
                "this is no time a job can run",
                "write it like 30m, 2h or 02:00:00",
                time.start,
                time.end,
            )
        )
        del values["walltime"]


def _missing(values: dict[str, Value], facts: Facts | None) -> tuple[str, ...]:
    site = facts.site if facts else None
    needless: set[str] = set()
    if site is not None and site.scheduler.kind == "none":
        needless = {"nodes", "account", "walltime_min"}
    elif site is not None and (site.scheduler.account == "optional" or site.defaults.account):
        needless = {"account"}
    model, technique = values.get("model"), values.get("paradigm")
    if model and technique and family(str(model.value)) and own_paradigm(str(technique.value)):
        needless.add("script")  # Maple's own small model of that family
    return tuple(name for name in REQUIRED if name not in values and name not in needless)


def _site(sentence: Sentence, found: list[Found]) -> str | None:
    named = [each for each in found if each.field == "site"]
    if not named:
        return None
    fresh = [each for each in named if not each.past] or named
    corrected = [each for each in fresh if each.corrected]
    return str((corrected or fresh)[-1 if corrected else 0].value)


def _facts(
    site: str | None, queue: str | None, gpu: str | None, catalogue: Catalogue, known: Vocabulary
) -> Facts | None:
    if site is None:
        return None
    if site in known.places:
        return place_facts(site, known)
    if site not in catalogue.aliases():
        return None
    return facts_of(catalogue.get(site).site, queue, gpu, known)


def _launchers(sentence: Sentence, found: list[Found], errors: list[Issue]) -> None:
    """A framework's launcher and the site's, each told to start several processes per node, start their product."""
    launchers = [each for each in found if each.field == "launcher"]
    kinds_named = {each.value for each in launchers}
    framework = next(
        (each for each in found if each.field == "framework" and each.value in ("deepspeed", "accelerate")), None
    )
    mpi = next((each for each in launchers if each.value == "mpi"), None)
    other = next((each for each in launchers if each.value == "torchrun"), framework)
    if "mpi" not in kinds_named or mpi is None or other is None:
        return
    several = [each for each in found if each.field == "gpus" and isinstance(each.value, int) and each.value > 1]
    if len(several) > 1 or (len(several) == 1 and re.search(r"\beach\b.*\bstart|both", sentence.text, re.I)):
        start, end = sentence.place(mpi)
        errors.append(
            Issue(
                "LAUNCHER_TASK_MISMATCH",
                "two launchers would each start several processes per node, so every process starts a whole set again",
                "keep one of the two: either one process per device by the site's launcher, or one framework "
                "launcher per node",
                start,
                end,
            )
        )


def _vague(found: list[Found], stated: dict[str, Value], sentence: Sentence, warnings: list[Issue]) -> None:
    for each in found:
        start, end = sentence.place(each)
        if each.field == "vague":
            warnings.append(
                Issue("INVALID_VALUE", f"{sentence.text[start:end]!r} is no single number", "state one", start, end)
            )
        elif each.field == "walltime" and each.value is None and stated["walltime"].value is None:
            warnings.append(
                Issue(
                    "INVALID_VALUE",
                    f"{sentence.text[start:end]!r} is no clear time limit",
                    "write it like 30m, 2h or 02:00:00",
                    start,
                    end,
                )
            )
