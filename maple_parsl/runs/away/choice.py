"""Which of several sites a run goes to: those it fits, that answer, and where it would start first; with the reason.

Asked are only sites that the user named, or whose own files lead there. Nothing is submitted or started by asking.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from maple_parsl.errors import ConfigurationError, MapleError, RequestError
from maple_parsl.transport import Via, connect

if TYPE_CHECKING:
    from maple_parsl.catalogue import Catalogue
    from maple_parsl.plan import Plan

ANY = "any"
SECONDS = 60.0
"""How long a site may take to answer; one that takes longer is left out."""
_WHOLE = re.compile(r"\d+\Z")


@dataclass(frozen=True)
class Facts:
    """What a site's scheduler says of a queue now.

    Attributes:
        idle: nodes that are free; None where the scheduler does not say. waiting: jobs before this one.
        seconds: of the answer.
    """

    idle: int | None
    waiting: int
    seconds: float

    def rank(self, nodes: int) -> tuple[bool, int, float]:
        """Smaller is better: it starts at once, few wait before it, a quick answer."""
        at_once = self.waiting == 0 and (self.idle is None or self.idle >= nodes)
        return not at_once, self.waiting, self.seconds

    def said(self, plan: Plan) -> str:
        """In words."""
        queue = f" in {plan.queue}" if plan.queue else ""
        idle = "" if self.idle is None else f"{self.idle} nodes idle, "
        return f"{idle}{self.waiting} jobs wait{queue}, answers in {self.seconds:.1f} s"


@dataclass(frozen=True)
class Candidate:
    """A site that was asked: its facts, or why it is out."""

    site: str
    facts: Facts | None
    said: str


@dataclass(frozen=True)
class Choice:
    """The site that was chosen, and why not another."""

    site: str
    candidates: tuple[Candidate, ...]

    @property
    def why(self) -> str:
        """What each site said, the chosen one first."""
        rows = sorted(self.candidates, key=lambda one: one.site != self.site)
        return "; ".join(f"{one.site}: {one.said}" for one in rows)


def listed(site: str | None) -> tuple[str, ...] | None:
    """The names in ``any`` (none: all that the user's files lead to) or ``a,b``; None where one site is meant."""
    if site == ANY:
        return ()
    if site is None or "," not in site:
        return None
    return tuple(dict.fromkeys(name.strip() for name in site.split(",") if name.strip()))


def choose(
    names: Sequence[str],
    catalogue: Catalogue,
    composed: Callable[[str], Plan],
    way: Callable[[str], Via | None],
) -> Choice:
    """Ask all of them at once.

    Args:
        names: sites; none for those that the user's own files lead to.
        composed: the plan at a site. way: how a site is reached; None for this machine.

    Raises:
        RequestError: no site can take the run; each says why.
    """
    sites = tuple(names) or reachable(catalogue)
    if not sites:
        raise RequestError("site any: none of your site files leads to a site; maple endpoints setup SITE shows how")
    with ThreadPoolExecutor(len(sites)) as pool:
        found = tuple(pool.map(lambda name: _asked(name, composed, way), sites))
    able = [(one.facts.rank(nodes), name) for (one, nodes), name in zip(found, sites, strict=True) if one.facts]
    candidates = tuple(one for one, _ in found)
    if not able:
        raise RequestError("no site can take this: " + "; ".join(f"{one.site}: {one.said}" for one in candidates))
    return Choice(min(able)[1], candidates)


def reachable(catalogue: Catalogue) -> tuple[str, ...]:
    """The sites that the user's own files lead to."""
    from maple_parsl.transport.via import configured

    found = []
    for name in catalogue.names():
        try:
            if configured(catalogue.get(name)) is not None:
                found.append(name)
        except (ConfigurationError, RequestError):  # a wrong file of another site does not matter here
            continue
    return tuple(found)


def _asked(name: str, composed: Callable[[str], Plan], way: Callable[[str], Via | None]) -> tuple[Candidate, int]:
    try:
        plan = composed(name)
        via = way(name) or Via("here")
        connect(via).ready()
        facts = _facts(plan, via)
    except MapleError as error:
        return Candidate(name, None, " ".join(str(error).split())), 0
    return Candidate(name, facts, facts.said(plan)), plan.shape.nodes


def _facts(plan: Plan, via: Via) -> Facts:
    began = time.monotonic()

    def command(*argv: str) -> str:
        said: dict[str, Any] = connect(via).call("command", deadline=SECONDS, argv=list(argv), limit=SECONDS / 3)
        if said.get("code") != 0:
            raise RequestError(f"{argv[0]} there: {' '.join(str(said.get('err')).split())[:200]}")
        return str(said["out"])

    idle, waiting = None, 0
    if plan.scheduler == "slurm":
        queue = [f"--partition={plan.queue}"] if plan.queue else []
        counts = command("sinfo", "--noheader", *queue, "--states=idle", "--format=%D").split()
        idle = sum(int(word) for word in counts if _WHOLE.match(word))
        waiting = len(command("squeue", "--noheader", *queue, "--states=PENDING", "--format=%i").split())
    elif plan.scheduler == "pbs":
        text = command("qstat", "-Qf", *([plan.queue] if plan.queue else []))
        waiting = sum(map(int, re.findall(r"\bQueued:(\d+)", text)))
    else:
        connect(via).call("status", deadline=SECONDS, runs=[])
    return Facts(idle, waiting, time.monotonic() - began)
