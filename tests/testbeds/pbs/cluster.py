"""`PbsStandIn`: a folder with stand-in commands and a pretended cluster."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).parent
COMMANDS = ("qsub", "qstat", "qselect", "qdel", "pbsnodes")
LAUNCHERS = {"pals": "mpiexec", "hydra": "mpiexec", "openmpi": "mpirun", "ibrun": "ibrun"}
PROFILE = """\
module() { echo "module $*" >>"$HOME/modules.txt"; }
conda() { [ "$1" != shell.bash ] || echo :; }
export -f module conda
"""


class PbsStandIn:
    """A pretended PBS cluster in a folder; `environment` brings its commands to a process.

    Args:
        folder: where it lives. hosts: names of the pretended hosts. dialect: of the launcher on its nodes.
        history: whether ended jobs are remembered. queues: names and their longest walltime.
        place: of jobs that state none.
    """

    def __init__(
        self,
        folder: Path,
        *,
        hosts: tuple[str, ...] = ("pnode1", "pnode2", "pnode3"),
        dialect: str = "pals",
        history: bool = True,
        queues: Mapping[str, str] | None = None,
        place: str = "free",
        ncpus: int = 64,
        ngpus: int = 4,
    ) -> None:
        self.folder = folder
        for name in ("bin", "home", "scripts", "aux", "spool", "deleted"):
            (folder / name).mkdir(parents=True)
        # The nodes' own commands hide this machine's of the same name.
        path = f"{folder / 'bin'}:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
        settings = {
            "server": "pbsserver",
            "hosts": hosts,
            "default_queue": "workq",
            "queues": {"workq": {}} | {name: {"walltime": limit} for name, limit in (queues or {}).items()},
            "node": {"mem": "512gb", "ncpus": ncpus, "ngpus": ngpus},
            "history": history,
            "place": place,
            "path": path,
        }
        (folder / "conf.json").write_text(json.dumps(settings))
        (folder / "next").write_text("1")
        (folder / "pbs.conf").write_text(f"PBS_SERVER=pbsserver\nPBS_HOME={folder}\n")
        (folder / "home" / ".bash_profile").write_text(f"export PATH={path}\n{PROFILE}")
        python = shlex.join([sys.executable, "-E", "-S"])
        for command in COMMANDS:
            self._put(command, f'exec {python} {HERE / "server.py"} {command} "$@"')
        self._put(LAUNCHERS[dialect], f'exec {python} {HERE / "launchers.py"} {dialect} "$@"')
        self._put("hostname", "case ${1-} in -i|-I) echo 127.0.0.1 ;; *) uname -n ;; esac")

    def _put(self, name: str, text: str) -> None:
        file = self.folder / "bin" / name
        file.write_text(f"#!/bin/bash\n# STAND-IN, see tests/testbeds/pbs/README.md\n{text}\n")
        file.chmod(0o755)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PBS_CONF_FILE": str(self.folder / "pbs.conf"),
            "PATH": f"{self.folder / 'bin'}:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        }
