"""The main job, on this machine: the plan, who runs where, training with a falling loss, the exit record."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def maple(*words: str) -> None:
    """Type a command and show it."""
    print(f"\n$ maple {' '.join(words)}", flush=True)
    subprocess.run([str(Path(sys.executable).parent / "maple"), *words], check=True)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="maple-demo-") as folder:
        os.environ["MAPLE_HOME"] = folder
        os.environ["MAPLE_RUN_ROOT"] = str(Path(folder) / "work")
        words = ("gpt", "fsdp", "local")
        maple("plan", *words, "--map")
        maple("run", *words, "--follow", "--", "--steps", "40")
        (record,) = Path(folder).glob("work/*/exit.json")
        print(f"\nThe exit record the job left, {record.name}:\n  {record.read_text().strip()}")
        metrics = (record.parent / "metrics.jsonl").read_text().splitlines()
        end = next(said for said in map(json.loads, reversed(metrics)) if said["event"] == "end")
        print(f"Loss fell from {end['first_loss']:.3f} to {end['last_loss']:.3f}.")
        return 0 if end["last_loss"] < end["first_loss"] else 1


if __name__ == "__main__":
    sys.exit(main())
