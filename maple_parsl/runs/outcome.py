"""How a run ended, as one printable value."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from maple_parsl.runs import metrics
from maple_parsl.runs.evidence import Evidence
from maple_parsl.runs.metrics import Metrics
from maple_parsl.runs.state import Facts, Resolved, RunState
from maple_parsl.runs.words import explain


@dataclass(frozen=True)
class Outcome:
    """The end of a run.

    Attributes:
        ok: it did what it was asked to.
        code: exit code of the first process that failed, or of the job; None where unknown.
        rank, host: the first failing process. cause: why, in plain words; empty when all went well.
        started, ended: of the last attempt, seconds since 1970. seconds: between them.
        node_hours: nodes x time of the last attempt, as used.
        attempts: how often the job started.
        restarts: of a run that is started again where it fails: what was decided after each attempt.
    """

    id: str
    state: RunState
    job_id: str | None
    code: int | None
    rank: int | None
    host: str | None
    cause: str
    started: float | None
    ended: float | None
    hosts: str
    attempts: int
    node_hours: float | None
    metrics: Metrics | None
    run_dir: str
    title: str = ""
    restarts: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.state is RunState.DONE

    @property
    def seconds(self) -> float | None:
        return self.ended - self.started if self.started is not None and self.ended is not None else None

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {**asdict(self), "ok": self.ok, "seconds": self.seconds, "state": self.state.value}

    @classmethod
    def from_dict(cls, raw: dict[str, Any]) -> Outcome:
        """Read it back; raises TypeError or ValueError for what is none."""
        known = {f.name for f in fields(cls)}
        values = {key: value for key, value in raw.items() if key in known}
        found = raw.get("metrics")
        values["metrics"] = Metrics(**found) if isinstance(found, dict) else None
        values["restarts"] = tuple(raw.get("restarts", ()))
        values["state"] = RunState(raw["state"])
        return cls(**values)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """The summary, a line per fact that is known."""
        head = f"{self.id}: {self.state.value}"
        if self.code is not None:
            head += f", code {self.code}"
        if self.seconds is not None:
            head += f", {duration(self.seconds)}"
        if self.hosts:
            head += f" on {self.hosts}"
        rows = [head]
        if self.title:
            rows.append(f"  {self.title}")
        if self.cause:
            rows.append(f"  cause: {self.cause}")
        if self.metrics is not None and self.metrics.last_loss is not None:
            found = self.metrics
            speed = f", {found.samples_per_s:.1f} samples/s" if found.samples_per_s else ""
            rows.append(f"  loss {found.first_loss:.4f} -> {found.last_loss:.4f} after {found.steps} steps{speed}")
        if self.attempts > 1:
            rows.append(f"  started {self.attempts} times")
        rows += [f"  {row}" for row in self.restarts]
        if self.node_hours is not None:
            rows.append(f"  {self.node_hours:.3f} node-hours used")
        rows.append(f"  files: {self.run_dir}")
        return rows


def conclude(
    run_id: str,
    title: str,
    folder: Path,
    run_dir: str,
    nodes: int | None,
    found: Resolved,
    facts: Facts,
    evidence: Evidence,
) -> Outcome:
    """The outcome of a run whose state is final; ``folder`` is where its files are read."""
    record, job = found.exit, found.job
    first = record.first_failure if record else None
    started = record.started if record else evidence.started.started if evidence.started else None
    ended = record.ended if record else None
    hours = (ended - started) / 3600 * nodes if nodes and ended is not None and started is not None else None
    code = record.code if record else job.exit_code if job else None
    rank = first.get("rank") if first else None
    return Outcome(
        id=run_id,
        state=found.state,
        job_id=found.job_id,
        code=code,
        rank=rank if isinstance(rank, int) else None,
        host=str(first["host"]) if first and first.get("host") else None,
        cause=explain(found, facts, evidence),
        started=started,
        ended=ended,
        hosts=record.hosts if record else "",
        attempts=evidence.attempt,
        node_hours=hours,
        metrics=metrics.read(folder),
        run_dir=run_dir,
        title=title,
    )


def duration(seconds: float) -> str:
    """Seconds in words."""
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
