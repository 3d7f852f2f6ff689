"""A job as the scheduler described it, in Maple's words, as it is kept between questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from maple_parsl.plan import Plan

# The scheduler's verdicts that say why a job ended, in the words of RunState.
CAUSES = {"timeout", "cancelled", "preempted", "node-fail", "out-of-memory"}
ENDED = CAUSES | {"completed", "failed"}
_WORDS = {
    "queued": "pending",
    "held": "pending",
    "suspended": "running",
    "completing": "running",
    "done": "completed",
    "succeeded": "completed",
    "canceled": "cancelled",
    "deadline": "timeout",
    "node_fail": "node-fail",
    "node-failure": "node-fail",
    "boot_fail": "node-fail",
    "boot-fail": "node-fail",
    "oom": "out-of-memory",
    "out_of_memory": "out-of-memory",
}


@dataclass(frozen=True)
class Job:
    """What a scheduler said of one job.

    Attributes:
        state: ``pending``, ``running``, ``unknown`` or one of :data:`ENDED`.
        raw_state, reason, explanation: the scheduler's words, and the same in plain ones.
        never: it can never start as it stands.
        start_estimate: when the scheduler expects it to start, as text.
    """

    job_id: str
    name: str
    state: str
    raw_state: str = ""
    reason: str | None = None
    explanation: str | None = None
    never: bool = False
    exit_code: int | None = None
    exit_signal: int | None = None
    start_estimate: str | None = None
    nodes: str | None = None
    restarts: int = 0
    source: str = ""

    @classmethod
    def of(cls, info: Any) -> Job:
        """From a scheduler's answer."""
        state = str(getattr(info.state, "value", info.state)).lower()
        nodes, estimate = info.nodes, info.start_estimate
        return cls(
            job_id=str(info.job_id),
            name=str(info.name or ""),
            state=_WORDS.get(state, state.replace("_", "-")),
            raw_state=str(info.raw_state or ""),
            reason=info.reason,
            explanation=info.explanation,
            never=bool(info.never),
            exit_code=info.exit_code,
            exit_signal=info.exit_signal,
            start_estimate=None if estimate is None else str(estimate),
            nodes=None if nodes is None else nodes if isinstance(nodes, str) else ",".join(map(str, nodes)),
            restarts=info.restarts or 0,
            source=str(info.source or ""),
        )

    def to_json(self) -> dict[str, Any]:
        """As JSON values; :meth:`from_json` reads them back."""
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Job:
        """Raises TypeError for what is no job."""
        known = {f.name for f in fields(cls)}
        return cls(**{key: value for key, value in raw.items() if key in known})


class Scheduler(Protocol):
    """What runs need of a scheduler. Errors: SubmissionError (refused), SchedulerError (no usable answer)."""

    def submit(self, plan: Plan, script_file: Path) -> str: ...

    def query(self, job_ids: Sequence[str]) -> Mapping[str, Any]: ...

    def find(self, names: Sequence[str]) -> Mapping[str, Sequence[Any]]: ...

    def cancel(self, job_id: str) -> None: ...
