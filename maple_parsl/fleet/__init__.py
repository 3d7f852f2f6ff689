"""Agent inference on whichever endpoint is available.

A :class:`Fleet` has members: endpoints of the user's, each with a model there. A question goes, many prompts in one
call, to the best of them; when it is late or fails, to the next. Nothing here starts a block of a scheduler: an
endpoint whose template would is left out unless its member names a node-hour limit.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol

from maple_parsl.errors import TransportError
from maple_parsl.fleet.routing import Router
from maple_parsl.transport.base import opened, question

__all__ = ["Answers", "Fleet", "Member", "Step", "members"]

PROBE_SECONDS = 30.0
_STATUS_SECONDS = 30.0
_ONE_CALL = 3 << 20
_BLOCKS = re.compile(r"(Slurm|PBSPro|Torque|LSF|GridEngine|Cobalt|Condor|Kubernetes|AWS|GoogleCloud)Provider", re.I)
Prompt = Sequence[Mapping[str, str]]


@dataclass(frozen=True)
class Member:
    """An endpoint that may answer.

    Attributes:
        name: of its site. endpoint: its id. model: id or path of the weights there.
        node_hours: what a block it starts may cost; without it no block is ever started there.
    """

    name: str
    endpoint: str
    model: str
    node_hours: float | None = None


@dataclass(frozen=True)
class Step:
    """What was tried for a question: the member, what came of it, and after how many seconds."""

    member: str
    what: str
    seconds: float


@dataclass(frozen=True)
class Answers:
    """JSON texts, one for each prompt, in order; who gave them, and the way there."""

    texts: tuple[str, ...]
    member: str
    model: str
    trace: tuple[Step, ...]


class Endpoint(Protocol):
    """What a fleet needs of :class:`maple_parsl.transport.globus.Globus`."""

    def online(self, deadline: float = ...) -> bool: ...
    def metadata(self, deadline: float = ...) -> dict[str, Any]: ...
    def run(self, source: str, entry: str, arguments: tuple[Any, ...], deadline: float) -> Any: ...


@cache
def worker_source() -> str:
    """The program that answers, as text."""
    return (Path(__file__).parent / "worker.py").read_text(encoding="utf-8")


def _globus(member: Member) -> Endpoint:
    from maple_parsl.transport.globus import Globus

    return Globus(member.endpoint)


@dataclass
class Fleet:
    """Members, and what is remembered of them.

    Args:
        members: who may answer. hedge_seconds: after this long without an answer the next is asked as well, or
            after twice what its calls took before.
        most: tokens of an answer. source: the program that answers. connect: makes the way to a member.
    """

    members: Sequence[Member]
    hedge_seconds: float = PROBE_SECONDS
    most: int = 512
    source: str = field(default_factory=worker_source)
    connect: Callable[[Member], Endpoint] = _globus
    router: Router = field(default_factory=Router)
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._by_name = {member.name: member for member in self.members}
        self._ways: dict[str, Endpoint] = {}
        self._online: dict[str, tuple[float, bool]] = {}
        self._blocks: dict[str, bool] = {}
        self._lock = threading.Lock()

    def answer(self, prompts: Sequence[Prompt], schema: Mapping[str, Any], deadline: float) -> Answers:
        """Answers to all prompts.

        Raises:
            TransportError: nobody answered within ``deadline`` seconds; it says who was tried and why not.
        """
        began, trace = self.clock(), list[Step]()
        end = began + deadline
        waiting: dict[Future[tuple[str, ...]], str] = {}
        left = self.router.order(self._by_name, began)
        tried: set[str] = set()
        while self.clock() < end:
            name = self._next(left, tried, trace, began) if self._due(waiting, began) else None
            if name is not None:
                now = self.clock() - began
                trace += [Step(late, "late, so the next was asked too", now) for late in waiting.values()]
                tried.add(name)
                waiting[_begun(partial(self._ask, name, prompts, schema, end))] = name
            if not waiting:
                break
            for future in wait(waiting, timeout=self._patience(waiting, end), return_when=FIRST_COMPLETED).done:
                who, seconds = waiting.pop(future), self.clock() - began
                error = future.exception()
                if error is None:
                    steps = (*trace, Step(who, "answered", seconds))
                    return Answers(future.result(), who, self._by_name[who].model, steps)
                trace.append(Step(who, str(error), seconds))
        trace += [Step(name, "no answer in time", self.clock() - began) for name in waiting.values()]
        said = "; ".join(f"{step.member}: {step.what}" for step in trace) or "no endpoint is configured, or all rest"
        raise TransportError(f"no endpoint answered: {said}")

    def probe(self, name: str, deadline: float = PROBE_SECONDS) -> dict[str, Any]:
        """What a member's worker has: accelerator, memory, packages, the model.

        Raises:
            TransportError: it does not answer, or a probe would start a block.
        """
        member = self._by_name[name]
        if why := self._gate(member, began=True):
            raise TransportError(f"{name}: {why}", certain=True)
        text = question("probe", {"model": member.model})
        return opened(self._way(member).run(self.source, "entry", (text,), deadline), "probe")

    def _next(self, left: list[str], tried: set[str], trace: list[Step], began: float) -> str | None:
        while left:
            name = left.pop(0)
            why = self._gate(self._by_name[name], began=not tried)
            if why is None:
                return name
            trace.append(Step(name, why, self.clock() - began))
        return None

    def _gate(self, member: Member, began: bool) -> str | None:
        """Why a member is not asked; None when it is. Not the ``began`` one, a hedge goes to running blocks only."""
        try:
            if not self._is_online(member):
                return "offline"
            blocks = self._starts_blocks(member)
        except TransportError as error:
            return str(error)
        if not blocks:
            return None
        if member.node_hours is None:
            return "it would start a block; state node_hours to allow that"
        running = self.router.records[member.name].answered_at > self.clock() - _STATUS_SECONDS
        return None if began or running else "a second question goes only to blocks that run"

    def _is_online(self, member: Member) -> bool:
        at, found = self._online.get(member.name, (-1e9, False))
        if self.clock() - at > _STATUS_SECONDS or not found:
            found = self._way(member).online(20.0)
            self._online[member.name] = (self.clock(), found)
        return found

    def _starts_blocks(self, member: Member) -> bool:
        """Whether the endpoint's template names a provider of a scheduler or cloud; so it is taken to, if unknown."""
        if member.name not in self._blocks:
            template = self._way(member).metadata(20.0).get("user_config_template")
            self._blocks[member.name] = not isinstance(template, str) or bool(_BLOCKS.search(template))
        return self._blocks[member.name]

    def _way(self, member: Member) -> Endpoint:
        with self._lock:
            if member.name not in self._ways:
                self._ways[member.name] = self.connect(member)
            return self._ways[member.name]

    def _ask(self, name: str, prompts: Sequence[Prompt], schema: Mapping[str, Any], end: float) -> tuple[str, ...]:
        member, began, good = self._by_name[name], self.clock(), False
        self.router.started(name)
        try:
            texts: list[str] = []
            for part in _parts(prompts):
                seconds = max(0.1, end - self.clock())
                asked = {
                    "model": member.model,
                    "prompts": part,
                    "schema": schema,
                    "most": self.most,
                    "seconds": seconds,
                }
                said = self._way(member).run(self.source, "entry", (question("answer", asked),), seconds)
                texts += _checked(opened(said, "answer"), len(part), schema)
            good = True
            return tuple(texts)
        finally:
            if not good:
                self._online.pop(name, None)
            self.router.ended(name, self.clock() - began, self.clock(), good)

    def _due(self, waiting: Mapping[Any, str], began: float) -> bool:
        """Whether the next member is to be asked: nobody is at it, or those who are, are late."""
        return not waiting or self.clock() - began >= self._late_after(waiting) * len(waiting)

    def _late_after(self, waiting: Mapping[Any, str]) -> float:
        known = [self.router.records[name].latency for name in waiting.values()]
        means = [2 * mean for mean in known if mean is not None]
        return min(self.hedge_seconds, max(means)) if means else self.hedge_seconds

    def _patience(self, waiting: Mapping[Any, str], end: float) -> float:
        return max(0.01, min(self._late_after(waiting), end - self.clock(), 1.0))


def _begun(work: Callable[[], tuple[str, ...]]) -> Future[tuple[str, ...]]:
    """Begin it in a thread that does not keep the program from ending: a lost call would, until its deadline."""
    made: Future[tuple[str, ...]] = Future()

    def run() -> None:
        try:
            made.set_result(work())
        except BaseException as error:
            made.set_exception(error)

    threading.Thread(target=run, name="maple-fleet", daemon=True).start()
    return made


def _parts(prompts: Sequence[Prompt]) -> list[list[Any]]:
    """As few calls as their size allows."""
    parts: list[list[Any]] = [[]]
    size = 0
    for prompt in prompts:
        rows = [dict(message) for message in prompt]
        length = len(json.dumps(rows))
        if size + length > _ONE_CALL and parts[-1]:
            parts.append([])
            size = 0
        parts[-1].append(rows)
        size += length
    return parts


def _checked(said: Mapping[str, Any], count: int, schema: Mapping[str, Any]) -> list[str]:
    """The texts, each JSON with what the schema requires at its top."""
    rows = said.get("answers")
    if not isinstance(rows, list) or len(rows) != count:
        raise TransportError("the answer does not fit the question")
    texts = []
    for row in rows:
        text = row.get("text") if isinstance(row, dict) else None
        if not isinstance(text, str):
            raise TransportError(str(row.get("error") if isinstance(row, dict) else row)[:300])
        try:
            value = json.loads(text)
        except ValueError:
            raise TransportError(f"the model's answer is not JSON: {text[:80]!r}") from None
        if schema.get("type") == "object":
            missing = set(schema.get("required", ())) - set(value) if isinstance(value, dict) else {"an object"}
            if missing:
                raise TransportError(f"the model's answer lacks {', '.join(sorted(missing))}")
        texts.append(text)
    return texts


def members(site: str = "any") -> list[Member]:
    """The endpoints that the user's own site files name for inference (``inference_endpoint`` under ``[remote]``).

    Args:
        site: one of them, or ``any``.
    """
    from maple_parsl.catalogue import Catalogue

    catalogue = Catalogue.load()
    found = []
    for name in catalogue.names() if site == "any" else (site,):
        record = catalogue.get(name)
        remote = record.site.remote
        if remote is None or not remote.inference_endpoint or not remote.inference_model:
            continue
        if record.origin("remote.inference_endpoint").layer != "catalogue":
            hours = remote.inference_node_hours
            found.append(Member(name, remote.inference_endpoint, remote.inference_model, hours))
    return found
