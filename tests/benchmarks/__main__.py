"""Speed and memory as ratios: ``python -m tests.benchmarks [FILE.json] [--quick]``.

Each figure is a median of paired measurements in alternating order; the bar it is compared with stands beside it.
A figure over its bar is marked, and is no failure: machines differ, and this one may be busy.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from tests.benchmarks import checking, composing, submitting
from tests.benchmarks.measure import ratio

PLAN = (
    "import sys; sys.argv[1:] = ['plan','gpt','ddp','delta','--nodes','2','--walltime','1h','--account',"
    "'x-delta-gpu','--queue','gpuA100x4']; from maple_parsl.cli import main; sys.exit(main())"
)


def main() -> int:
    quick = "--quick" in sys.argv
    files = [word for word in sys.argv[1:] if not word.startswith("--")]
    pairs = 3 if quick else 15
    figures = [
        ratio("import maple_parsl / import pydantic", 1.5, "import maple_parsl", "import pydantic", pairs),
        ratio(
            "from maple_parsl import Request, Plan, plan / BaseModel",
            2.5,
            "from maple_parsl import Request, Plan, plan",
            "from pydantic import BaseModel",
            pairs,
        ),
        ratio("maple plan, cold / import pydantic, typer, rich", 3, PLAN, "import pydantic, typer, rich", pairs),
    ]
    figures += composing.figures()
    figures += checking.figures(pairs=3 if quick else 15)
    figures += submitting.figures(pairs=3 if quick else 20)
    for figure in figures:
        print(figure, flush=True)
    if files:
        Path(files[0]).write_text(json.dumps([asdict(figure) for figure in figures], indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
