"""`Stand`: several real endpoints as different sites, one of them on a real Slurm, in namespaces of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar

from tests.testbeds.globus.broker import SERVER, URL, Broker
from tests.testbeds.slurm import packages
from tests.testbeds.slurm.cluster import Testbed
from tests.testbeds.slurm.config import BedConfig
from tests.testbeds.slurm.machine import PYTHON, TestbedError, wait_until

ROOT = Path(__file__).parents[3]
ENVIRONMENT = Path(os.environ.get("MAPLE_ENDPOINT_VENV", ROOT / ".venv-endpoint"))
ENDPOINTS = ROOT / "endpoints"
SITES = Path(__file__).parent / "sites"
USER, UID = "ada", 20001
SLOW = 300  # seconds for anything to start on a busy machine; an idle one takes a few
PORT = 5000  # fixed in the SDK for its environment "local"
CLIENT = {
    "GLOBUS_SDK_ENVIRONMENT": "local",
    "GLOBUS_SDK_SERVICE_URL_AUTH": f"http://localhost:{PORT}/",
    "GLOBUS_COMPUTE_CLIENT_ID": "6d6f6d65-6d61-706c-8000-0000000000c1",
    "GLOBUS_COMPUTE_CLIENT_SECRET": "stand",
}


@dataclass
class Place:
    """One site of the stand: a folder, an endpoint, and what its processes find on PATH.

    Attributes:
        kind: folder of :data:`ENDPOINTS` with the endpoint's configuration.
        slurm: it sees the scheduler's commands.
    """

    name: str
    kind: str = "login-node"
    slurm: bool = False
    template: str | None = None
    process: subprocess.Popen[bytes] | None = None
    extra: dict[str, str] = field(default_factory=dict)


PLACES = (Place("slurm-stand", slurm=True), Place("nvidia-stand", "inference"), Place("intel-stand", "inference"))


def why_not() -> str | None:
    """Why the stand cannot start here, with what to do; None when it can."""
    if said := packages.why_not(False):
        return said
    if not Path(SERVER).exists():
        return "the stand needs RabbitMQ: make system (as root) installs rabbitmq-server"
    if not (ENVIRONMENT / "bin/globus-compute-endpoint").exists():
        return f"the stand needs an endpoint's environment in {ENVIRONMENT}: make endpoint"
    minor = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if not (ENVIRONMENT / "lib" / minor).exists():
        return (
            f"the stand needs one minor version of Python for endpoints and tests: make clean endpoint PYTHON={minor}"
        )
    for path in (ENVIRONMENT, _packages()):
        closed = [folder for folder in (path, *path.resolve().parents) if not folder.stat().st_mode & 0o001]
        if closed:
            return (
                f"the endpoints' user cannot enter {closed[0]}: have the clone in a folder that other users may enter"
            )
    return None


def _packages() -> Path:
    """Where this Python's packages are."""
    return Path(next(path for path in sys.path if path.endswith("site-packages")))


class Stand:
    """Broker, service, endpoints and Slurm; a context manager. All of it ends with the testbed's namespaces."""

    __test__: ClassVar[bool] = False

    def __init__(
        self, places: Sequence[Place] = PLACES, *, prefix: Path | None = None, detach: bool = False, nodes: int = 4
    ) -> None:
        # a held job would wait two minutes; what a job needs fits one machine
        self.bed = Testbed(BedConfig(nodes=nodes, users={USER: UID}), prefix=prefix, detach=detach)
        self.prefix = self.bed.prefix
        self.places = {place.name: place for place in places}
        self.broker = Broker(self.bed, self.prefix / "broker")
        self.service: subprocess.Popen[bytes] | None = None

    # -- life ---------------------------------------------------------------------------------------------

    def start(self) -> Stand:
        if reason := why_not():
            raise TestbedError(reason)
        self.bed.start()
        try:
            self.broker.start()
            self.broker.wait()
            self.start_service()
            for place in self.places.values():
                self.configure(place)
                self.start_endpoint(place.name)
            for name in self.places:
                self.wait_online(name)
        except BaseException as error:
            error.add_note(self.logged())
            self.stop()
            raise
        return self

    def stop(self) -> None:
        self.bed.stop()
        for process in (self.service, self.broker.process, *(place.process for place in self.places.values())):
            if process is not None:
                process.wait(30)

    @classmethod
    def attach(cls, prefix: Path) -> Stand:
        """The stand that another process started there."""
        stand = cls(prefix=prefix, detach=True)
        stand.places = {name: place for name, place in stand.places.items() if stand.home(name).exists()}
        return stand

    def remove(self) -> None:
        """Stop it, and remove its files."""
        self.bed.remove()

    def __enter__(self) -> Stand:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # -- the service --------------------------------------------------------------------------------------

    def start_service(self) -> None:
        self.service = self._spawn(
            [ENVIRONMENT / "bin/python", Path(__file__).with_name("service.py"), str(PORT), URL], "service", {}
        )
        wait_until(lambda: self._asks("/v2/version"), "the service to answer, see log/service.log", SLOW, 0.2)

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """A request to the service, made inside its network."""
        words = ["curl", "-sS", "--max-time", "20", f"http://localhost:{PORT}{path}"]
        if body is not None:
            words += ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
        return json.loads(self.bed.run(words, cwd="/").stdout)

    def _asks(self, path: str) -> bool:
        try:
            self.ask(path)
        except (TestbedError, ValueError):
            return False
        return True

    def faults(self, *faults: dict[str, Any]) -> None:
        """What the service does wrong next: ``path`` (a pattern), ``status`` or ``body`` or ``hang``, ``count``."""
        self.ask("/stand/faults", {"faults": list(faults)})

    def calls(self) -> list[list[Any]]:
        """Every request the service got: time, method, path."""
        return list(self.ask("/stand/calls")["calls"])

    # -- endpoints ----------------------------------------------------------------------------------------

    def home(self, name: str) -> Path:
        """The site's folder; the user's home there."""
        return self.prefix / "home" / USER / name

    def environment(self, place: Place) -> dict[str, str]:
        home = self.home(place.name)
        path = [str(home / "bin"), str(ENVIRONMENT / "bin"), "/usr/bin", "/bin", "/usr/sbin", "/sbin"]
        return {
            **CLIENT,
            "HOME": str(home),
            "USER": USER,
            "LOGNAME": USER,
            "LANG": "C.UTF-8",
            "OMP_NUM_THREADS": "1",
            "GLOBUS_COMPUTE_USER_DIR": str(home / "globus"),
            "PATH": ":".join(path),
            **({"SLURM_CONF": str(self.prefix / "etc/slurm.conf")} if place.slurm else {}),
            **({"PYTHONPATH": str(home / "late")} if place.kind == "inference" else {}),
            **place.extra,
        }

    def configure(self, place: Place) -> None:
        """The shipped configuration as its user would put it there."""
        home = self.home(place.name)
        (home / "bin").mkdir(parents=True)
        self._put_python(home / "bin/python3")
        self._put_packages(home / "late")
        if not place.slurm:
            for command in ("sbatch", "qsub"):
                (home / "bin" / command).write_text("#!/bin/sh\necho 'no scheduler here' >&2\nexit 1\n")
                (home / "bin" / command).chmod(0o755)
        self._owned(home)
        self.as_user(place, [str(ENVIRONMENT / "bin/globus-compute-endpoint"), "configure", place.name])
        folder = home / "globus" / place.name
        for file in (ENDPOINTS / place.kind).iterdir():
            if file.suffix in (".yaml", ".j2", ".json"):
                shutil.copyfile(file, folder / file.name)
        if place.template is not None:
            (folder / "user_config_template.yaml.j2").write_text(place.template)
        with (folder / "config.yaml").open("a") as file:
            file.write("\nheartbeat_period: 5\n")
        rows = [f"{name}: {json.dumps(value)}" for name, value in self.environment(place).items() if name not in _FIXED]
        (folder / "user_environment.yaml").write_text("\n".join(rows) + "\n")
        self._owned(home)

    def start_endpoint(self, name: str) -> None:
        place = self.places[name]
        words = [*_DROP, str(ENVIRONMENT / "bin/globus-compute-endpoint"), "start", name]
        place.process = self._spawn(words, name, self.environment(place))

    def end_endpoint(self, name: str) -> None:
        """Kill its processes at once, as when its machine dies."""
        pids = self.core_process(name) + self.user_process(name)
        if not pids:
            raise TestbedError(f"no endpoint of {name} runs")
        self.kill(pids)
        if (process := self.places[name].process) is not None:
            process.wait(60)

    def endpoint_id(self, name: str) -> str:
        file = self.home(name) / "globus" / name / "endpoint.json"
        wait_until(file.exists, f"the endpoint of {name} to register, see log/{name}.log", SLOW, 0.1)
        return str(json.loads(file.read_text())["endpoint_id"])

    def status(self, name: str) -> str:
        return str(self.ask(f"/v2/endpoints/{self.endpoint_id(name)}/status").get("status"))

    def wait_online(self, name: str) -> None:
        wait_until(lambda: self.status(name) == "online", f"{name} to be online, see log/{name}.log", SLOW, 0.2)

    def wait_offline(self, name: str) -> None:
        wait_until(lambda: self.status(name) == "offline", f"{name} to be offline", SLOW, 0.2)

    def processes(self, pattern: str) -> list[int]:
        """Pids (inside the namespaces) of processes of the user whose command line has this pattern."""
        found = self.bed.run(["pgrep", "-u", str(UID), "-f", pattern], cwd="/", check=False)
        return [int(word) for word in found.stdout.split()]

    def core_process(self, name: str) -> list[int]:
        """The endpoint itself, which runs no calls."""
        return self.processes(rf"Globus Compute Endpoint \*\(.*, {name}\)")

    def user_process(self, name: str) -> list[int]:
        """Its child that runs the calls."""
        return self.processes(rf"uep\.{self.endpoint_id(name)}\.")

    def kill(self, pids: Sequence[int], signal: str = "KILL") -> None:
        if pids:
            self.bed.run(["kill", f"-{signal}", *map(str, pids)], cwd="/", check=False)

    def as_user(self, place: Place, words: Sequence[str]) -> str:
        """Run a command as the site's user; its output."""
        env = self.environment(place)
        return self.bed.run([*_DROP, *words], cwd=self.home(place.name), env=env, timeout=120).stdout

    # -- a client -----------------------------------------------------------------------------------------

    def client_environment(self, folder: Path, model: str = "tiny") -> dict[str, str]:
        """What a person elsewhere has set who uses the stand: their own configuration, in ``folder``.

        Args:
            model: path of the weights that the workers of the endpoints for inference load.
        """
        sites = folder / "config/sites"
        sites.mkdir(parents=True, exist_ok=True)
        for name in self.places:
            text = (SITES / f"{name}.toml").read_text()
            said = {"@ENDPOINT@": self.endpoint_id(name), "@HOME@": str(self.home(name)), "@MODEL@": model}
            for mark, value in said.items():
                text = text.replace(mark, value)
            (sites / f"{name}.toml").write_text(text)
        shared = ROOT / "tests/testbeds/slurm/sites/slurm-stand.toml"
        return {
            **CLIENT,
            "GLOBUS_COMPUTE_USER_DIR": str(folder / "globus"),
            "MAPLE_HOME": str(folder / "maple"),
            "MAPLE_CONFIG_HOME": str(folder / "config"),
            "MAPLE_SITE_PATH": str(shared),
            "PYTHONPATH": str(ROOT),
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        }

    def outside(self, words: Sequence[str]) -> list[str]:
        """The argv of a command that shares the stand's network and nothing else: not its files, users or Slurm."""
        pid = self.bed._machine.head_pid()
        if pid is None:
            raise TestbedError(f"no stand is up in {self.prefix}")
        return [*PYTHON, str(Path(__file__).with_name("network.py")), str(pid), *words]

    # -- inside -------------------------------------------------------------------------------------------

    def _spawn(self, words: Sequence[str | Path], name: str, env: dict[str, str]) -> subprocess.Popen[bytes]:
        with (self.prefix / "log" / f"{name}.log").open("ab") as out:
            return subprocess.Popen(
                [*self.bed.prefix_command(cwd="/", env=env), *map(str, words)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def _put_python(self, path: Path) -> None:
        """A Python with torch that the site's user may run: this one's packages under the system's interpreter."""
        inner = (ENVIRONMENT / "bin/python").resolve()
        path.write_text(f'#!/bin/sh\nPYTHONPATH={_packages()} exec {inner} "$@"\n')
        path.chmod(0o755)

    def _put_packages(self, folder: Path) -> None:
        """Torch and transformers for workers that hold a model: this Python's, behind the endpoint's own packages."""
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(f"import sys\nsys.path.append({str(_packages())!r})\n")

    def _owned(self, folder: Path) -> None:
        for path in (folder, *folder.rglob("*")):
            os.lchown(path, UID, UID)

    def logged(self) -> str:
        own = ("service", *self.places)
        logs = [path for path in (self.prefix / "log").glob("*.log") if path.stem in own]
        logs += (self.prefix / "broker/log").glob("*.log")
        return "\n".join(f"{path.name}: {path.read_text(errors='replace')[-1500:]}" for path in logs)


_FIXED = ("HOME", "USER", "PWD")
_DROP = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "--inh-caps=-all"]


def version() -> str:
    """The installed endpoint's version, for messages."""
    done = subprocess.run(
        [str(ENVIRONMENT / "bin/globus-compute-endpoint"), "version"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()
