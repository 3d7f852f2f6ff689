"""The process that runs scripts contained: one reader for many cases, started once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from maple_parsl.errors import MapleError

_START = "import sys; sys.path.insert(0, sys.argv[1]); from maple_parsl.judge.inside.main import main; main()"
_TREE = str(Path(__file__).parents[2])


class SandboxError(MapleError):
    """This system allows no namespaces, so a script would not be contained; nothing was run."""

    exit_code = 6


class Sandbox:
    """Runs worlds in namespaces of their own: no network, nothing of this machine but its programs, no privileges.

    Use as a context manager. One sandbox runs one world after the other; use several for several cores.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", *(["-B"] if sys.dont_write_bytecode else []), "-c", _START, _TREE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
            cwd="/",
        )

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the reader; a world that still runs is killed."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def run(self, world: dict[str, Any]) -> dict[str, Any]:
        """What happened in a world. Raises :class:`SandboxError`; a fault of the judge itself is a RuntimeError."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(world).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the sandbox's reader ended")
        answer: dict[str, Any] = json.loads(line)
        if "sandbox" in answer:
            raise SandboxError(
                f"the script would not be contained here: {answer['sandbox']}. User namespaces are needed"
                " (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns)"
            )
        if "broken" in answer:
            raise RuntimeError(str(answer["broken"]))
        return answer
