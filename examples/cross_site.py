"""One workflow across sites: prepare here, train at two sites at once, evaluate the better one here.

    python examples/cross_site.py SITE SITE [--folder cross-site]

Run it again after it was killed: what was begun is found again by its id, and nothing is done twice. Each site is one
that your files lead to (``maple endpoints``) or this machine (``local``).
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
from pathlib import Path
from typing import Any

import parsl
from parsl import python_app
from parsl.config import Config
from parsl.executors import ThreadPoolExecutor

import maple_parsl as maple

RATES = {"0": "3e-3", "1": "3e-4"}  # the two trainings differ in their learning rate


class Notes:
    """What was done, a small file for each step: written by rename, so that it is whole or not there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def read(self, name: str) -> Any:
        path = self.folder / f"{name}.json"
        return json.loads(path.read_text()) if path.exists() else None

    def write(self, name: str, value: Any) -> None:
        temporary = self.folder / f".{name}.new"
        temporary.write_text(json.dumps(value))
        os.replace(temporary, self.folder / f"{name}.json")


@python_app
def prepare(notes: Notes) -> dict[str, Any]:
    """Pre-processing, here: the seed and length that both trainings use."""
    found = notes.read("prepared")
    if found is None:
        found = {"seed": 7, "steps": 20}
        notes.write("prepared", found)
    return dict(found)


def launched(notes: Notes, number: str, site: str, prepared: dict[str, Any]) -> maple.Run:
    """The training's run: the one that was begun, or a new one. Its id is noted before anything is submitted."""
    name = f"run-{number}"
    run_id = notes.read(name)
    if run_id is None:
        run_id = f"cross-{number}-{secrets.token_hex(6)}"
        notes.write(name, run_id)
    limits = {} if site == "local" else {"nodes": 1, "walltime": "10m"}
    args = ["--lr", RATES[number], "--seed", str(prepared["seed"]), "--steps", str(prepared["steps"])]
    return maple.run("gpt", "ddp", site, gpus_per_node=2, args=args, yes=True, run_id=run_id, **limits)


@python_app
def train(notes: Notes, number: str, site: str, prepared: dict[str, Any]) -> dict[str, Any]:
    """One training at one site, to its end."""
    run = launched(notes, number, site, prepared)
    outcome = run.result()
    if outcome.state.value == "not_submitted":  # killed before it was sent; there is no job, so this is the first
        outcome = run.resubmit().result()
    loss = outcome.metrics.last_loss if outcome.ok and outcome.metrics else None
    return {"run": run.id, "site": site, "state": outcome.state.value, "loss": loss}


@python_app
def evaluate(trained: list[dict[str, Any]]) -> dict[str, Any]:
    """The better one."""
    good = [one for one in trained if one["loss"] is not None]
    if not good:
        raise RuntimeError(f"neither training succeeded: {trained}")
    return min(good, key=lambda one: float(one["loss"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sites", nargs=2, metavar="SITE")
    parser.add_argument("--folder", type=Path, default=Path("cross-site"))
    stated = parser.parse_args()
    notes = Notes(stated.folder.absolute())
    config = Config(
        executors=[ThreadPoolExecutor(max_threads=4)], run_dir=str(notes.folder / "parsl"), usage_tracking=0
    )
    with parsl.load(config):
        prepared = prepare(notes).result()
        trainings = [train(notes, str(number), site, prepared) for number, site in enumerate(stated.sites)]
        trained = [training.result() for training in trainings]
        for one in trained:
            print(f"{one['site']}: run {one['run']} {one['state']}, loss {one['loss']}")
        best = evaluate(trained).result()
        notes.write("best", best)
        print(f"better: {best['run']} at {best['site']}")


if __name__ == "__main__":
    main()
