"""Client and site may have different minor versions of Python: text is sent, and JSON comes back."""

from __future__ import annotations

import ast
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from maple_parsl import remote
from maple_parsl.fleet import worker_source
from maple_parsl.transport.base import Here

MINORS = range(9, 15)


def interpreters() -> dict[str, str]:
    """Version -> interpreter, of those on this machine that are new enough; this one among them."""
    found = {platform.python_version(): sys.executable}
    places = [shutil.which(f"python3.{minor}") for minor in MINORS]
    beside = Path(sys.base_prefix).parent  # where a version manager keeps them side by side
    places += [str(path) for minor in MINORS for path in beside.glob(f"3.{minor}.*/bin/python3")]
    for place in filter(None, places):
        words = [place, "-c", "import platform; print(platform.python_version())"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        if done.returncode == 0:
            found.setdefault(done.stdout.strip(), place)
    return found


def test_the_same_call_is_answered_by_every_python_of_this_machine(tmp_path: Path) -> None:
    for version, python in interpreters().items():
        said = Here(python).call("where", root=str(tmp_path / version))
        assert said["python"] == version
        assert said["root"] == str(tmp_path / version)
        spec = {"kind": "none", "job_name": "maple-other", "nodes": 1, "tasks_per_node": 1, "walltime": "00:05:00"}
        answers = [
            Here(python).call(
                "submit", root=said["root"], run="20261201-103000-0ther0", number=1, files=[], spec=spec, script="x.sh"
            )
            for _ in range(2)
        ]
        assert answers[0]["job_id"] == answers[1]["job_id"]


def test_both_programs_are_text_that_python_3_9_reads() -> None:
    for text in (remote.source(), worker_source()):
        assert ast.parse(text, feature_version=(3, 9)).body
