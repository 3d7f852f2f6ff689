"""A cluster that the catalogue does not know, made usable by the commands of the tutorial alone."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.slurm.login import Login
from tests.testbeds.slurm import Testbed
from tests.testbeds.slurm.config import BedConfig
from tests.testbeds.slurm.fixtures import require_testbed

pytestmark = [pytest.mark.slurm, pytest.mark.torch, pytest.mark.timeout(600)]
PATIENCE = 280


@contextmanager
def cluster(gpus: int) -> Iterator[Testbed]:
    """Another cluster: its own name, nodes, GPUs and array limit."""
    require_testbed()
    settings = {"ClusterName": "plover", "MaxArraySize": "16"}
    with Testbed(BedConfig(nodes=3, gpus=gpus, gpu_type="h100", node_prefix="wader", settings=settings)) as bed:
        yield bed


@pytest.fixture
def home() -> Iterator[Path]:
    """A home folder that all nodes see, and not below /tmp, which nodes have for themselves as a rule."""
    folder = Path(tempfile.mkdtemp(prefix="maple-home-", dir=Path.home()))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def added(bed: Testbed, home: Path) -> tuple[Login, dict[str, Any]]:
    """The cluster's site drafted with the tutorial's first command; its facts."""
    login = Login(bed, home, MAPLE_SITE_PATH="", MAPLE_SITE="", MAPLE_CONFIG_HOME=str(home / ".config" / "maple"))
    said = login.maple("sites", "add", "plover", "--probe")
    assert said.returncode == 0, said.stderr
    assert "nothing is left to fill in" in said.stdout
    return login, tomllib.loads((home / ".config" / "maple" / "sites" / "plover.toml").read_text())


def test_the_gpus_of_a_cluster_are_found(home: Path) -> None:
    with cluster(gpus=2) as bed:
        login, facts = added(bed, home)
        assert login.maple("sites", "check", "plover").returncode == 0
    assert (facts["kinds"]["h100"]["gpus"], facts["kinds"]["h100"]["nodes"]) == (2, 3)
    assert (facts["kinds"]["h100"]["vendor"], facts["kinds"]["h100"]["gres_type"]) == ("nvidia", "h100")
    assert facts["directives"]["gpu_request"] == "gpus-per-node"


def test_probed_drafted_tested_and_trained_on(home: Path) -> None:
    with cluster(gpus=0) as bed:
        _train(*added(bed, home))


def _train(login: Login, facts: dict[str, Any]) -> None:
    assert facts["detect"]["slurm_cluster"] == "plover"
    assert facts["scheduler"]["max_array"] == 16
    assert [queue["name"] for queue in facts["queues"]["entry"]] == ["debug", "gpu", "high"]
    assert (facts["kinds"]["cpu"]["gpus"], facts["kinds"]["cpu"]["backend"]) == (0, "gloo")
    assert "outbound" not in facts["environments"]["default"]

    assert login.maple("sites", "check", "plover").returncode == 0
    found = login.maple("sites", "here")
    assert found.stdout.startswith("plover\n")

    refused = login.maple("sites", "test", "plover", "--queue", "gpu", "--python", sys.executable)
    assert refused.returncode == 8
    assert "at most 0.33 node-hours" in refused.stderr
    tested = login.maple(
        "sites", "test", "plover", "--queue", "gpu", "--python", sys.executable, "--yes",
        timeout=PATIENCE,
    )  # fmt: skip
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "plover works: all 2 ranks on 2 nodes met and made a step together" in tested.stdout

    trained = login.maple(
        "run", "gpt", "ddp", "plover", "--nodes", "2", "--walltime", "5m", "--queue", "gpu",
        "--python", sys.executable, "--yes", "--wait", "--json", "--", "--steps", "8", timeout=PATIENCE,
    )  # fmt: skip
    assert trained.returncode == 0, trained.stderr
    run = json.loads(trained.stdout)["run"]
    assert {said["host"] for said in login.ranks(run)} == {"wader1", "wader2"}
