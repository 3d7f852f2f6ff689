"""A Parsl workflow on blocks made from a Maple plan: several two-node launches, one after another, in one allocation.

    python examples/parsl_blocks.py mycluster --account abc --queue gpu

The plan's Config keeps one block of the plan's shape. The app runs the plan's launch line in the batch shell, once per
learning rate; the allocation is reused, so every launch after the first starts at once.
"""

from __future__ import annotations

import argparse

import maple_parsl
from maple_parsl.provider import launch_command, workflow


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("site")
    words.add_argument("--account")
    words.add_argument("--queue")
    words.add_argument("--script", default="train.py")
    stated = words.parse_args()

    import parsl

    @parsl.bash_app
    def train(command: str, stdout: str = "train.out", stderr: str = "train.err") -> str:
        return command

    plans = [
        maple_parsl.plan(
            script=stated.script,
            site=stated.site,
            nodes=2,
            walltime="30m",
            account=stated.account,
            queue=stated.queue,
            args=("--lr", rate),
        )
        for rate in ("1e-3", "3e-4")
    ]
    with workflow(plans[0]):
        futures = [train(launch_command(plan, limit_seconds=600)) for plan in plans]
        for future in futures:
            print(future.result())


if __name__ == "__main__":
    main()
