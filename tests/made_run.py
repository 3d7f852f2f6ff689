"""A run as a failed training leaves it behind, made by hand: store, run directory, log, figures, two attempts."""

from __future__ import annotations

import json
from pathlib import Path

from maple_parsl import api
from maple_parsl.plan import RunPlace
from maple_parsl.runs.run import Run
from maple_parsl.runs.store import Store

SECRET = "between-us-only"
BEGAN = 1_750_000_000


def failed_run(folder: Path, steps: int = 900) -> Run:
    """A run on two nodes of Delta: attempt 1 was requeued, attempt 2 failed at rank 3."""
    plan = api.plan(
        "gpt",
        "fsdp",
        "delta",
        nodes=2,
        walltime="30m",
        account="abcd-delta-gpu",
        queue="gpuA100x4",
        env={"NOTE": SECRET},
        memory="200G",
    )
    run_dir = folder / "runs" / "made-by-hand"
    store = Store(folder / "home")
    entry = store.add(plan.at(RunPlace(run_id="20250615-made", run_dir=str(run_dir), work_dir=str(folder))))
    entry.create("intent.1.json", {"job_name": "maple-20250615-made", "at": BEGAN})
    entry.create("submitted.1.json", {"job_id": "4242"})
    (run_dir / "attempts" / "1").mkdir(parents=True)
    (run_dir / "attempts" / "2").mkdir()
    (run_dir / "claim").symlink_to("4242")
    first = {"rank": 3, "local_rank": 3, "node_rank": 0, "host": "gpua001", "code": 1, "at": BEGAN + 900}
    _record(run_dir / "attempts" / "1" / "exit.json", 1, 143, "terminated", BEGAN + 60, BEGAN + 300, None)
    _record(run_dir / "exit.json", 2, 1, "failed", BEGAN + 400, BEGAN + 901, first)
    started = {"job_id": "4242", "attempt": 2, "host": "gpua001", "started": BEGAN + 400}
    (run_dir / "started.json").write_text(json.dumps(started))
    (run_dir / "metrics.jsonl").write_text(
        "".join(
            json.dumps({"event": "step", "step": step, "loss": 4 / step + 0.5, "samples_per_s": 100 + step % 7}) + "\n"
            for step in range(1, steps + 1)
        )
    )
    (run_dir / "log.txt").write_text(
        f"\x1b]0;title\x07\x1b[31mred\x1b[0m {SECRET} <script>document.title='x'</script> "
        f"<img src=https://example.org/x.png>\nHF_TOKEN=hf_{'b' * 30}\n{'long' * 400}\n"
        "Traceback (most recent call last):\n"
        '  File "train.py", line 9, in <module>\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    )
    return Run(entry, store)


def _record(
    path: Path, attempt: int, code: int, reason: str, started: int, ended: int, first: dict[str, object] | None
) -> None:
    record = {"job_id": "4242", "attempt": attempt, "code": code, "reason": reason, "signal": None}
    record |= {"first_failure": first, "started": started, "ended": ended, "hosts": "gpua[001-002]"}
    path.write_text(json.dumps(record))
