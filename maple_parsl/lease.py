"""A lease on blocks: they end by themselves when the program that asked for them is gone.

Parsl's interchange and its blocks live on after their driver is killed, and would hold the nodes until the
walltime. Here the driver keeps a small file fresh; each block watches it, and a guardian on the driver's host
ends the interchange and cancels the blocks as soon as the driver's pipe closes.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from maple_parsl.schedulers import submission_environment

_CANCEL = {
    "slurm": 'scancel {clusters}"$SLURM_JOB_ID"',
    "pbs": 'qdel "$PBS_JOBID"',
    "none": "trap '' TERM; kill -s TERM 0",
}
_FORCE = {"slurm": "$$", "pbs": "$$", "none": "0"}  # here the block's whole process group
_WATCH = r"""
# Ends this block when the program that asked for it is gone: it renews the lease while it lives.
maple_watch() {{
  local seen='' now since=$SECONDS misses=0
  while kill -0 $$ 2>/dev/null; do
    if now=$(cat {path} 2>/dev/null); then misses=0; else misses=$((misses + 1)); fi
    [ "$misses" -lt 3 ] || break # given back
    if [ "$misses" -eq 0 ] && [ "$now" != "$seen" ]; then seen=$now since=$SECONDS; fi
    [ $((SECONDS - since)) -lt {limit} ] || break
    sleep {period}
  done
  kill -0 $$ 2>/dev/null || return 0
  echo "maple: the program that asked for this block is gone; the block ends" >&2
  {cancel}
  sleep 20
  kill -s KILL {force}
}}
[ -e {path} ] || sleep {period}
[ -e {path} ] || {{ echo "maple: the program that asked for this block is gone" >&2; exit 0; }}
maple_watch </dev/null >/dev/null &
"""
_GUARD = r"""
read -r word
[ "$word" = "done" ] && exit 0
ids=$(sed -n 2p "$1")
rm -f "$1"
line=
read -r line <"/proc/$2/stat"
fields=(${line##*) })
if [ "${fields[19]}" = "$3" ]; then kill -s KILL "$2"; fi
[ -z "$ids" ] || $4 $ids
"""


def watch(path: Path, scheduler: str, clusters: str | None, limit: int) -> str:
    """Shell lines for a block's start: look after the lease at ``path``."""
    option = f"--clusters={clusters} " if clusters else ""
    period = max(1, min(5, limit // 4))
    cancel = _CANCEL[scheduler].format(clusters=option)
    return _WATCH.format(
        path=shlex.quote(str(path)), limit=limit, period=period, cancel=cancel, force=_FORCE[scheduler]
    )


class Lease:
    """The driver's side: a thread that renews the file, and the guardian.

    Args:
        path: the file, where all nodes see it.
        job_ids: gives the jobs of the blocks there are now.
        cancel: words of the command that cancels jobs.
        limit: seconds after which a lease that is not renewed is void.
    """

    def __init__(self, path: Path, job_ids: Callable[[], Iterable[str]], cancel: Iterable[str], limit: int) -> None:
        self._path, self._job_ids, self._cancel = path, job_ids, " ".join(cancel)
        self._period = max(1.0, limit / 6)
        self._count = 0
        self._over = threading.Event()
        self._guardian: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep, name="maple-lease", daemon=True)

    def start(self) -> None:
        """Take the lease; a block that starts from now on finds it."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._renew()
        self._thread.start()

    def guard(self, pid: int) -> None:
        """Have this process and the blocks ended when the driver dies, however it dies."""
        started = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
        self._guardian = subprocess.Popen(
            ["bash", "-c", _GUARD, "maple-guardian", str(self._path), str(pid), started, self._cancel],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=submission_environment(os.environ),
            start_new_session=True,
        )

    def end(self) -> None:
        """Give the lease back; blocks that are left end within seconds."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(5)
        self._path.unlink(missing_ok=True)
        if self._guardian is not None and self._guardian.stdin is not None:
            with contextlib.suppress(OSError):
                self._guardian.stdin.write(b"done\n")
                self._guardian.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._guardian.wait(5)
            self._guardian = None

    def _keep(self) -> None:
        while not self._over.wait(self._period):
            try:
                self._renew()
            except OSError as error:  # a full or absent file system: the next renewal may work
                print(f"maple: the lease {self._path} cannot be renewed: {error}", file=sys.stderr)

    def _renew(self) -> None:
        self._count += 1
        fresh = self._path.with_name(f"{self._path.name}.new")
        fresh.write_text(f"{self._count}\n{' '.join(self._job_ids())}\n")
        os.replace(fresh, self._path)
