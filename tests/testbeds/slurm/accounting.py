"""The accounting database of a live testbed: its own mariadbd on a unix socket, and slurmdbd.

The first start makes an image of the database (tables, accounts, QOS) and keeps it in a cache folder, so that
later starts only unpack it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .config import CLUSTER, HEAD, HEAD_ADDRESS, MUNGE_SOCKET, BedConfig
from .machine import TestbedError, wait_until
from .packages import find_program

Run = Callable[..., str]  # run(argv, input=..., check=...) on the head; its output

KEPT_IMAGES = 3  # 92 MiB each
SERVER_OPTIONS = (
    "--no-defaults",
    "--user=root",
    "--skip-networking",
    "--innodb-buffer-pool-size=64M",
    "--innodb-log-file-size=8M",
    "--innodb-lock-wait-timeout=900",
    "--innodb-flush-log-at-trx-commit=0",
    "--skip-innodb-doublewrite",
    "--innodb-flush-method=nosync",
)


def slurmdbd_conf(prefix: Path) -> str:
    return "\n".join(
        [
            "AuthType=auth/munge",
            f"AuthInfo=socket={prefix / MUNGE_SOCKET}",
            f"DbdHost={HEAD}",
            f"DbdAddr={HEAD_ADDRESS}",
            "SlurmUser=root",
            f"LogFile={prefix / 'log/slurmdbd.log'}",
            f"PidFile={prefix / 'run/slurmdbd.pid'}",
            "StorageType=accounting_storage/mysql",
            "StorageHost=localhost",
            "StorageUser=slurm",
            "StoragePass=slurm",
            "StorageLoc=slurm_acct_db",
            "",
        ]
    )


def account_commands(config: BedConfig) -> list[list[str]]:
    """sacctmgr input, one list per call: a call knows only the QOS that existed when it began."""
    whole = f" MaxTRESPerUser=gres/gpu={config.gpus * config.nodes}" if config.gpus else ""
    return [
        [
            f"add account proj1,proj2 Cluster={CLUSTER}",
            "add qos low Priority=1 PreemptMode=requeue",
            f"add qos high Priority=1000 Preempt=low,normal{whole} MaxWall=01:00:00",
            f"add user root Account=proj1,proj2 Cluster={CLUSTER} DefaultAccount=proj1",
        ],
        ["modify user where name=root account=proj1 set qos=normal,low,high defaultqos=normal"],
    ]


class Accounting:
    """mariadbd and slurmdbd on the head of one testbed."""

    def __init__(self, prefix: Path, config: BedConfig, cache: Path, head_root: Path, run: Run) -> None:
        self.prefix, self.config, self.cache, self.run = prefix, config, cache, run
        self.seen = head_root / str(prefix / "db").lstrip("/")  # the folder db, which is in the head's memory
        self.data = prefix / "db/data"
        self.socket = prefix / "db/s.sock"

    @property
    def environment(self) -> Mapping[str, str]:
        return {"MYSQL_UNIX_PORT": str(self.socket)}

    @property
    def image(self) -> Path:
        """Where the image of this configuration is kept; another name after any change of what makes it."""
        server = Path(find_program("mariadbd") or "/")
        dbd = Path(find_program("slurmdbd") or "/")
        made_from = [str(self.config.gpus), str(self.config.nodes), Path(__file__).read_text()]
        made_from += [str(path.stat().st_mtime_ns) for path in (server, dbd)]
        return self.cache / f"db-{hashlib.sha256(chr(0).join(made_from).encode()).hexdigest()[:16]}.tar"

    def start(self, controller: Callable[[], None], stop_controller: Callable[[], None]) -> None:
        """Start both servers with the accounts in place; the controller is needed while the image is made."""
        self.cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.cache.stat().st_uid != os.geteuid():
            raise TestbedError(f"{self.cache} belongs to someone else; name another cache folder")
        (self.prefix / "etc/slurmdbd.conf").write_text(slurmdbd_conf(self.prefix))
        (self.prefix / "etc/slurmdbd.conf").chmod(0o600)
        if not self.image.exists():
            self._make_image(controller, stop_controller)
        with tarfile.open(self.image) as archive:
            archive.extractall(self.seen / "data", filter="fully_trusted")
        self._start_servers()

    def stop(self) -> None:
        """End both so that the data folder can be copied: slurmdbd at once, mariadbd in good order."""
        dbd, server = self.prefix / "run/slurmdbd.pid", self.seen / "m.pid"
        self.run(["kill", "-KILL", dbd.read_text().strip()])
        dbd.unlink()
        self.run(["kill", server.read_text().strip()])
        wait_until(lambda: not server.exists(), "mariadbd to end")

    def _start_servers(self) -> None:
        log = self.prefix / "log/mariadbd.log"
        words = ["mariadbd", *SERVER_OPTIONS, f"--datadir={self.data}", f"--socket={self.socket}"]
        words += [f"--pid-file={self.prefix / 'db/m.pid'}"]
        script = 'exec setsid -f "$@" >"$LOG" 2>&1 </dev/null'
        self.run(["env", f"LOG={log}", "sh", "-c", script, "sh", *words])
        wait_until((self.seen / "s.sock").exists, f"mariadbd, see {log}")
        self.run(["slurmdbd"])
        wait_until(lambda: self._tells("cluster") is not None, "slurmdbd to answer")

    def _tells(self, what: str) -> str | None:
        answer = self.run(["sh", "-c", f"sacctmgr -nP show {what} || echo FAILED"], check=False)
        return None if "FAILED" in answer else answer

    def _make_image(self, controller: Callable[[], None], stop_controller: Callable[[], None]) -> None:
        install = ["mariadb-install-db", *SERVER_OPTIONS, "--skip-test-db", "--skip-name-resolve"]
        self.run([*install, f"--datadir={self.data}", "--auth-root-authentication-method=socket"])
        bootstrap = "\n".join(
            [
                "FLUSH PRIVILEGES;",
                "CREATE DATABASE slurm_acct_db;",
                "CREATE USER 'slurm'@'localhost' IDENTIFIED BY 'slurm';",
                "GRANT ALL ON slurm_acct_db.* TO 'slurm'@'localhost';",
                "",
            ]
        )
        self.run(["mariadbd", *SERVER_OPTIONS, f"--datadir={self.data}", "--bootstrap"], input=bootstrap)
        self._start_servers()
        self.run(["sacctmgr", "-iQ", "add", "cluster", CLUSTER], check=False)
        controller()  # it brings the GPU resource that the QOS limit names
        if self.config.gpus:
            wait_until(lambda: "gres|gpu" in (self._tells("tres") or ""), "the gpu resource to be known")
        stop_controller()
        for lines in account_commands(self.config):
            self._sacctmgr(lines)
        self.stop()
        self._save()

    def _sacctmgr(self, lines: Sequence[str]) -> None:
        output = self.run(["sacctmgr", "-i"], input="\n".join([*lines, "quit", ""]), check=False)
        with (self.prefix / "log/sacctmgr.log").open("a") as log:
            log.write(output)
        if "rror" in output or "nknown" in output:
            raise TestbedError(f"sacctmgr: {output.strip()[-600:]}")

    def _save(self) -> None:
        new = self.image.with_suffix(f".{os.getpid()}-{time.monotonic_ns()}")
        with tarfile.open(new, "w") as archive:
            archive.add(self.seen / "data", arcname=".")
        new.replace(self.image)
        images = sorted(self.cache.glob("db-*.tar"), key=lambda path: path.stat().st_mtime)
        for old in images[:-KEPT_IMAGES]:
            old.unlink(missing_ok=True)
        shutil.rmtree(self.seen / "data")
