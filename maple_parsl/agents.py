"""The four agents, as functions, and the bounded loop over them: words → a plan, or questions; with a trace.

extraction: words → reading;  retrieval: request → templates;  verification: plan → findings;  correction: what is
wrong → changes of fields nobody stated, each composed and verified again, at most three rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from maple_parsl.dialogue import Question, UnansweredError, problem_question, questions
from maple_parsl.errors import ComposeError, ConfigurationError, InferenceError, RequestError
from maple_parsl.extraction import FIELDS, Reading, Value, extract
from maple_parsl.extraction.statement import Statement, statement
from maple_parsl.finding import Finding
from maple_parsl.request import Request
from maple_parsl.retrieval import Match, retrieve
from maple_parsl.settings import AgentSettings, agent
from maple_parsl.trace import Step, Trace
from maple_parsl.walltime import Walltime

if TYPE_CHECKING:
    from maple_parsl.catalogue import Catalogue, SiteRecord
    from maple_parsl.inference import Answer as Answered
    from maple_parsl.inference import Backend
    from maple_parsl.plan import Plan
    from maple_parsl.site import Site
    from maple_parsl.template import Template

ROUNDS = 3
Composer = Callable[[Request], tuple["Plan", "SiteRecord"]]
Part = Literal["model", "retrieval", "verification", "correction"]


@dataclass(frozen=True)
class Answer:
    """What became of a request in words.

    Attributes:
        plan: exactly what would run; absent where questions are open. reading: what was understood.
        questions: to answer first. templates: how it can start, best first. notes: what has no place in a plan.
    """

    reading: Reading
    plan: Plan | None = None
    questions: tuple[Question, ...] = ()
    templates: tuple[Match, ...] = ()
    notes: tuple[str, ...] = ()
    trace: Trace = field(default_factory=Trace)

    @property
    def notices(self) -> tuple[str, ...]:
        """That a model which was chosen did not answer, and why; the rules answered alone."""
        failed = {step.model: str(step.decision["failed"]) for step in self.trace.steps if "failed" in step.decision}
        return tuple(
            f"model {name} did not answer, rules alone did: {why}" for name, why in failed.items() if name != "none"
        )

    def __str__(self) -> str:
        if self.plan is not None:
            return self.plan.title
        return "\n".join(f"{number}. {question}" for number, question in enumerate(self.questions, 1))

    def unanswered(self) -> UnansweredError:
        """The open questions, as the error that the command line shows."""
        known = {name: value.value for name, value in self.reading.values.items() if value.basis != "follows"}
        return UnansweredError(self.questions, known, (*self.notes, *self.notices))

    def to_dict(self) -> dict[str, Any]:
        return {
            "reading": self.reading.to_dict(),
            "plan": self.plan.model_dump(mode="json", by_alias=True) if self.plan else None,
            "templates": [match.to_dict() for match in self.templates],
            "notes": [*self.notes, *self.notices],
            **({} if self.plan else self.unanswered().to_dict()),
            "trace": self.trace.to_dict(),
        }


def understand(
    words: str, catalogue: Catalogue, trace: Trace, model: Backend | None = None, *, alone: bool = False
) -> Reading:
    """Extraction: the grammar's reading, with gaps filled by a model where one is chosen and its value is grounded.

    Args:
        alone: without a model, whatever the agent's settings say.
    """
    settings = agent("extraction")
    with trace.step("extraction", words=words[:2000]) as step:
        reading = extract(words, catalogue)
        told = reading.to_dict()
        step.decision = {name: told[name] for name in ("intent", "missing", "errors", "warnings")}
        step.decision["values"] = {name: value.value for name, value in reading.values.items()}
        step.spans = told["spans"]
    model = None if alone else model or _model(settings, trace, "extraction")
    if model is None or reading.errors or reading.intent != "launch":
        return reading
    return _fill(reading, settings, model, catalogue, trace)


def find_templates(
    request: Request, site: Site | None, templates: Mapping[str, Template], words: str, trace: Trace
) -> list[Match]:
    """Retrieval: the templates in the order to try them; text counts only where facts leave a choice."""
    with trace.step("retrieval", request=request.model_dump(mode="json", exclude_defaults=True)) as step:
        facts = retrieve(request, site, templates)
        open_choice = request.template is not None and not (facts and facts[0].fits)
        found = retrieve(request, site, templates, words) if open_choice else facts
        fitting = [match.name for match in found if match.fits]
        step.decision = {"fitting": fitting, "first": found[0].to_dict() if found else None}
        if not fitting:
            step.decision["nearest"] = [match.name for match in found[:3]]
    return found


def verify(plan: Plan, site: Site, trace: Trace, round: int = 1) -> tuple[Finding, ...]:
    """Verification: the plan's own findings, and those of every rule on the script that would be submitted."""
    from maple_parsl.checking.report import inspect
    from maple_parsl.script.render import outline

    # The shipped shell is the same in every script and has tests of its own; the rest is what differs.
    text = outline(plan)
    with trace.step("verification", round, title=plan.title, lines=text.count("\n")) as step:
        report = inspect(text.encode(), site if site.scheduler.kind != "none" else None, name="job.sh")
        placeless = (each.model_copy(update={"line": None, "column": None, "edits": ()}) for each in report.findings)
        found = (*plan.findings, *placeless)
        step.decision = {"findings": [f"{each.severity} {each.rule}: {each.message}" for each in found]}
    return found


def amend(
    request: Request,
    problem: str,
    offered: Sequence[str],
    trace: Trace,
    round: int,
    model: Backend | None = None,
    *,
    alone: bool = False,
) -> Request | None:
    """Correction: a change of fields that were not stated, by a model, among the names that are offered; else None.

    Args:
        alone: without a model, whatever the agent's settings say.
    """
    from maple_parsl.inference.propose import ask

    settings = agent("correction")
    model = None if alone else model or _model(settings, trace, "correction")
    fields = [name for name in settings.edits if getattr(request, name) is None]
    with trace.step("correction", round, problem=problem[:1000], fields=fields) as step:
        if model is None or not fields or round > settings.rounds:
            step.decision = {"changes": {}, "why": "no rule mends it, and what is missing only a person can say"}
            return None
        try:
            proposed, answer = ask(model, settings, fields, words=problem[:1000], problem=problem[:1000])
        except InferenceError as error:
            step.model = model.model
            step.decision = {"changes": {}, "failed": str(error)}
            return None
        _told(step, answer)
        kept = {name: value for name, value in proposed.items() if value in offered}
        refused = {name: value for name, value in proposed.items() if name not in kept}
        step.decision = {"changes": kept, "refused": refused}
        return Request.of(**{**_fields(request), **kept}) if kept else None


def answer(
    words: str,
    catalogue: Catalogue,
    composer: Composer,
    templates: Mapping[str, Template],
    *,
    model: Backend | None = None,
    stated: Mapping[str, Any] | None = None,
    without: Collection[Part] = (),
) -> Answer:
    """Words → a verified plan, or the questions that stand in its way.

    Args:
        composer: makes a plan of a request. model: instead of those of the agents' settings.
        stated: fields stated besides the words (options of a command, answers in a conversation); they win.
        without: parts to leave out, to measure what each is worth.
    """
    trace = Trace()
    reading = understand(words, catalogue, trace, model, alone="model" in without)
    if stated:
        reading = with_stated(reading, stated)
    site = _site(reading, catalogue)
    asked = questions(reading, site, catalogue.names())
    if reading.intent == "diagnose":
        asked = [
            *asked,
            Question(
                "intent", "This tells of a failure.", "maple diagnose LOG and maple check SCRIPT look for its cause"
            ),
        ]
    if asked:
        return Answer(reading, questions=tuple(asked), trace=trace)
    try:
        made = statement(reading)
    except RequestError as error:
        return Answer(reading, questions=(problem_question(str(error)),), trace=trace)
    request = made.request if not stated else Request.of(**{**_fields(made.request), **stated})
    matches = [] if "retrieval" in without else find_templates(request, site, templates, words, trace)
    return _loop(reading, Statement(request, made.notes), site, matches, composer, trace, model, without)


def with_stated(reading: Reading, stated: Mapping[str, Any]) -> Reading:
    """The reading with fields that were stated apart from the words."""
    for name, value in stated.items():
        if name not in (*FIELDS, "walltime"):
            continue
        place = "walltime_min" if name == "walltime" else name
        if name == "walltime":
            value = Walltime.parse(value).minutes
        reading = reading.with_value(place, Value(value, 0, 0, 1.0, "stated", "stated as an option"))
    return reading


def _loop(
    reading: Reading,
    made: Statement,
    site: Site | None,
    matches: list[Match],
    composer: Composer,
    trace: Trace,
    model: Backend | None,
    without: Collection[Part],
) -> Answer:
    request, problem = made.request, ""
    for round in range(1, ROUNDS + 1):
        try:
            plan, record = composer(request)
        except (ComposeError, RequestError) as error:
            problem = str(error)
            reasons = error.problems if isinstance(error, ComposeError) else (problem,)
            amended = None
            if "correction" not in without:
                offered = _offered(site, matches)
                amended = amend(request, "; ".join(reasons), offered, trace, round, model, alone="model" in without)
            if amended is None or amended == request:
                return Answer(
                    reading,
                    questions=tuple(map(problem_question, reasons)),
                    templates=tuple(matches),
                    notes=made.notes,
                    trace=trace,
                )
            request = amended
            continue
        if "verification" not in without:
            found = verify(plan, record.site, trace, round)
            plan = plan.model_copy(update={"findings": found})
        return Answer(reading, plan, (), tuple(matches), made.notes, trace)
    return Answer(
        reading, questions=(problem_question(problem),), templates=tuple(matches), notes=made.notes, trace=trace
    )


def _fill(reading: Reading, settings: AgentSettings, model: Backend, catalogue: Catalogue, trace: Trace) -> Reading:
    from maple_parsl.inference.grounding import grounded
    from maple_parsl.inference.propose import ask

    low = reading.words.lower()
    gaps = [name for name in reading.missing if any(cue in low for cue in settings.fills.get(name, ()))]
    if not gaps:
        return reading
    with trace.step("extraction", 2, gaps=gaps) as step:
        known = ", ".join(f"{name} {value.value}" for name, value in reading.values.items()) or "nothing"
        try:
            proposed, told = ask(model, settings, gaps, words=reading.words, known=known)
        except InferenceError as error:
            step.model = model.model
            step.decision = {"filled": {}, "failed": str(error)}
            return reading
        _told(step, told)
        filled: dict[str, Any] = {}
        refused: dict[str, str] = {}
        for name, value in proposed.items():
            place = grounded(name, value, reading, settings.fills[name])
            if isinstance(place, str):
                refused[name] = f"{value!r}: {place}"
                continue
            if name == "site" and str(value).lower() not in catalogue.aliases():
                refused[name] = f"{value!r}: there is no such site"
                continue
            filled[name] = value
            reading = reading.with_value(name, Value(value, *place, 0.5, "model", f"proposed by {told.model}"))
            step.spans[name] = {"start": place[0], "end": place[1], "text": reading.words[slice(*place)]}
        step.decision = {"filled": filled, "refused": refused}
    return reading


def _model(settings: AgentSettings, trace: Trace, name: str) -> Backend | None:
    if settings.model.backend == "none":
        return None
    from maple_parsl.inference import backend

    try:
        return backend(settings.model)
    except (InferenceError, ConfigurationError) as error:
        trace.steps.append(Step(name, decision={"failed": str(error)}, model=settings.model.name))
        if isinstance(error, ConfigurationError):
            raise
        return None


def _told(step: Step, told: Answered) -> None:
    step.model, step.route = told.model, told.route
    step.tokens = {"read": told.read, "written": told.written}


def _offered(site: Site | None, matches: Sequence[Match]) -> list[str]:
    queues = [each.name for each in site.queues.entry] if site is not None and site.queues else []
    kinds = list(site.kinds) if site is not None else []
    return [*queues, *kinds, *(match.name for match in matches if match.fits)]


def _site(reading: Reading, catalogue: Catalogue) -> Site | None:
    name = reading.get("site")
    return catalogue.get(name).site if name in catalogue.aliases() else None


def _fields(request: Request) -> dict[str, Any]:
    return {name: getattr(request, name) for name in request.model_fields_set}
