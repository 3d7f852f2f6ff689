"""A real RabbitMQ from Debian with folders of its own, inside a testbed's namespaces."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.testbeds.slurm.cluster import Testbed
from tests.testbeds.slurm.machine import wait_until

SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server"
PORT, DIST, EPMD = 5672, 25672, 4369
URL = f"amqp://guest:guest@127.0.0.1:{PORT}/%2f"


class Broker:
    """Start, stop and kill it; what it keeps is below ``folder``."""

    def __init__(self, bed: Testbed, folder: Path) -> None:
        self.bed, self.folder = bed, folder
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        for name in ("mnesia", "log", "home"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "plugins").write_text("[].\n")
        (self.folder / "rabbitmq.conf").write_text(
            "vm_memory_high_watermark.absolute = 1GB\ndisk_free_limit.absolute = 50MB\n"
        )
        env = {
            "HOME": str(self.folder / "home"),
            "RABBITMQ_NODENAME": "stand@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(PORT),
            "RABBITMQ_DIST_PORT": str(DIST),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": str(self.folder / "absent"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none",
            "ERL_EPMD_PORT": str(EPMD),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }
        with (self.folder / "log/console.log").open("ab") as out:
            self.process = subprocess.Popen(
                [*self.bed.prefix_command(cwd=self.folder, env=env), SERVER],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def wait(self, limit: float = 300) -> None:
        wait_until(self.listens, f"RabbitMQ to listen, see {self.folder}/log", limit, 0.2)

    def listens(self) -> bool:
        """Whether its port takes connections (looked up in the namespace's own table)."""
        table = self.bed.run(["cat", "/proc/net/tcp"], cwd="/").stdout
        return f":{PORT:04X} 00000000:0000 0A" in table

    def kill(self) -> None:
        """End it at once, as when its machine dies; what it had confirmed is on disk."""
        self.bed.run(["sh", "-c", "for f in /proc/[0-9]*/comm; do [ \"$(cat $f)\" = beam.smp ] && p=${f%/comm} && "
                      "kill -9 ${p#/proc/}; done; true"], cwd="/", check=False)  # fmt: skip
        if self.process is not None:
            self.process.wait(30)
        wait_until(lambda: not self.listens(), "RabbitMQ to end")
