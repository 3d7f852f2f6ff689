"""What a run tells: JSON lines from rank 0, and one file from each rank."""

from __future__ import annotations

import json
import os
from typing import TextIO

from .fingerprint import ParameterReport
from .paradigms import Trainer
from .world import World


class Metrics:
    """The events of the job, one JSON object a line, on stdout and appended to metrics.jsonl.

    Rank 0 alone writes; on other ranks all calls do nothing.
    """

    def __init__(self, world: World) -> None:
        self.file: TextIO | None = None
        if world.rank == 0:
            self.file = (world.run_dir / "metrics.jsonl").open("a", encoding="utf-8")

    def event(self, name: str, **fields: object) -> None:
        """Writes one event, at once: the process may be killed at any time."""
        if self.file is not None:
            line = json.dumps({"event": name, **fields})
            self.file.write(line + "\n")
            self.file.flush()
            print(line, flush=True)

    def close(self) -> None:
        """Closes the file."""
        if self.file is not None:
            self.file.close()


def write_rank_file(trainer: Trainer, state: str, report: ParameterReport | None = None, job: str = "") -> None:
    """Writes ``ranks/<rank>.json``, one line, replacing an earlier one as a whole.

    ``state`` is "running", "stopped" (by SIGTERM) or "done"; the parameters are those at the end.
    """
    world = trainer.world
    fields: dict[str, object] = {
        "state": state,
        "rank": world.rank,
        "local_rank": world.place.local_rank,
        "world_size": world.size,
        "host": world.host,
        "pid": os.getpid(),
        "device": str(world.device),
        "backend": world.backend,
        "replica": trainer.replica,
        "scope": trainer.scope,
    }
    if report is not None:
        fields.update(
            params_sha256=report.sha256,
            job_params_sha256=job,
            params=report.elements,
            local_params=report.local_elements,
            local_sha256=report.local_sha256,
        )
    folder = world.run_dir / "ranks"
    folder.mkdir(exist_ok=True)
    temporary = folder / f".{world.rank}.json.partial"
    temporary.write_text(json.dumps(fields) + "\n", encoding="utf-8")
    os.replace(temporary, folder / f"{world.rank}.json")
