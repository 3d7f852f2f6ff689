from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from maple_parsl.errors import UnknownNameError
from maple_parsl.here import Detection, LocalDevices, ask, detect_devices, detect_site
from maple_parsl.here import detection as detection_module
from tests.unit.site_world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def detect(
    world: World, environ: dict[str, str], answers: dict[str, str] | None = None, host: str | None = None
) -> Detection:
    def run(command: Sequence[str]) -> str | None:
        return (answers or {}).get(command[0])

    return detect_site(world.catalogue, environ, run=run, host=lambda: host, etc=world.root / "etc")


@pytest.mark.parametrize(
    "environ,answers,host,site,evidence",
    [
        ({"TERN_HOST": "TERN"}, {}, None, "tern", "TERN_HOST=TERN"),
        ({"BIRD_PATH": "/x:/opt/heron/bin"}, {}, None, "heron", "BIRD_PATH contains"),
        ({"SLURM_CLUSTER_NAME": "tern"}, {}, None, "tern", "SLURM_CLUSTER_NAME"),
        ({}, {"scontrol": "A = 1\nClusterName             = tern\n"}, None, "tern", "scontrol show config"),
        ({"PBS_SERVER": "heron-pbs-01"}, {}, None, "heron", "PBS_SERVER"),
        ({"PBS_JOBID": "17.heron-pbs-01.local"}, {}, None, "heron", "PBS_JOBID"),
        ({}, {"qstat": json.dumps({"Server": {"heron-pbs-01": {}}})}, None, "heron", "qstat -B"),
        ({}, {}, "login1.tern.example.org", "tern", "in the domain tern.example.org"),
        ({}, {}, "TERN.example.org.", "tern", "in the domain"),
        ({"MAPLE_SITE": "arctic"}, {}, None, "tern", "MAPLE_SITE=arctic"),
        ({"MAPLE_SITE": "heron", "TERN_HOST": "tern"}, {}, None, "heron", "MAPLE_SITE"),
    ],
)
def test_a_site_is_known_by_what_it_sets(
    world: World, environ: dict[str, str], answers: dict[str, str], host: str | None, site: str, evidence: str
) -> None:
    found = detect(world, environ, answers, host)
    assert found.site == site
    assert found.candidates == (site,)
    assert any(evidence in line for line in found.evidence)


@pytest.mark.parametrize(
    "environ,answers,host",
    [
        ({}, {}, None),
        ({}, {}, "tern-login1"),
        ({}, {}, "tern"),
        ({}, {}, "tern.example.org.evil.com"),
        ({}, {}, "bittern.example.org"),
        ({"TERN_HOST": "tern2"}, {}, None),
        ({"SLURM_CLUSTER_NAME": "tern2"}, {}, None),
        ({}, {"qstat": "not json", "scontrol": "garbage"}, None),
        ({}, {"qstat": "[]"}, None),
        ({}, {"qstat": '{"Server": 3}'}, None),
        ({"TERN_HOST": "other"}, {}, "login.tern.example.org"),
    ],
)
def test_a_host_name_or_a_half_fit_proves_nothing(
    world: World, environ: dict[str, str], answers: dict[str, str], host: str | None
) -> None:
    assert detect(world, environ, answers, host).site is None


def test_two_sites_that_fit_are_both_named(world: World) -> None:
    found = detect(world, {"TERN_HOST": "tern", "BIRD_PATH": "/opt/heron/"})
    assert found.site is None
    assert found.candidates == ("heron", "tern")
    assert "heron and tern fit equally" in found.evidence[-1]


def test_a_stronger_fact_decides_before_a_weaker_one(world: World) -> None:
    assert detect(world, {"TERN_HOST": "tern"}, host="x.heron.example.org").site == "tern"


def test_configuration_files_of_the_scheduler_are_read(world: World) -> None:
    (world.root / "etc/slurm").mkdir(parents=True)
    (world.root / "etc/slurm/slurm.conf").write_text("# ClusterName=heron\nclustername=tern # ours\n")
    assert detect(world, {}).site == "tern"
    (world.root / "etc/slurm/slurm.conf").unlink()
    (world.root / "etc/pbs.conf").write_text("PBS_EXEC=/opt/pbs\nPBS_SERVER=heron-pbs\n")
    assert detect(world, {}).site == "heron"


def test_an_unknown_override_is_an_error(world: World) -> None:
    with pytest.raises(UnknownNameError, match="did you mean tern"):
        detect(world, {"MAPLE_SITE": "tren"})


def test_a_broken_site_is_named_and_hides_no_other(world: World) -> None:
    path = world.write("user", "[kinds", "heron.toml")
    found = detect(world, {"TERN_HOST": "tern"})
    assert found.site == "tern"
    assert str(path) in found.evidence[0]


def test_a_command_that_hangs_is_given_up() -> None:
    start = time.monotonic()
    assert ask(["sh", "-c", "sleep 30 & sleep 30"], deadline=0.2) is None
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("command", [["/no/such/command"], ["sh", "-c", "echo x; exit 3"], ["/etc"]])
def test_a_command_that_fails_answers_nothing(command: list[str]) -> None:
    assert ask(command) is None


def test_slow_name_resolution_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detection_module.socket, "getfqdn", lambda: time.sleep(1) or "late")
    assert detection_module.full_host_name(0.05) is None


TWO = """\
GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-aaaa-1)
GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-bbbb-2)
"""
MIG = """\
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-aaaa-1)
  MIG 1g.5gb      Device  0: (UUID: MIG-cccc-1)
  MIG 1g.5gb      Device  1: (UUID: MIG-dddd-2)
"""


def devices(root: Path, environ: dict[str, str] | None = None, **answers: str) -> LocalDevices:
    def run(command: Sequence[str]) -> str | None:
        return answers.get(command[0].replace("-", "_"))

    return detect_devices(environ or {}, run=run, root=root)


@pytest.mark.parametrize(
    "visible,count",
    [(None, 2), ("0", 1), ("1,0", 2), ("GPU-bbbb", 1), ("", 0), ("-1", 0), ("0,7,1", 1), ("NoDevFiles", 0)],
)
def test_nvidia_devices_that_are_visible(tmp_path: Path, visible: str | None, count: int) -> None:
    environ = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    found = devices(tmp_path, environ, nvidia_smi=TWO)
    assert (found.kind, found.count) == ("cuda" if count else "cpu", count)
    assert set(found.names) <= {"NVIDIA H100 80GB HBM3"}


def test_a_divided_gpu_is_one_device(tmp_path: Path) -> None:
    found = devices(tmp_path, nvidia_smi=MIG)
    assert (found.kind, found.names) == ("cuda", ("MIG 1g.5gb",))


def amd(root: Path, gpus: int) -> None:
    (root / "dev").mkdir()
    (root / "dev/kfd").touch()
    for number in range(gpus + 1):
        node = root / f"sys/class/kfd/kfd/topology/nodes/{number}"
        node.mkdir(parents=True)
        (node / "properties").write_text(f"cpu_cores_count 0\nsimd_count {440 if number else 0}\n")
        (node / "name").write_text("aldebaran\n" if number else "\n")


def test_amd_devices(tmp_path: Path) -> None:
    amd(tmp_path, 8)
    assert devices(tmp_path).count == 8
    found = devices(tmp_path, {"ROCR_VISIBLE_DEVICES": "4,5,6,7", "HIP_VISIBLE_DEVICES": "0,1"})
    assert (found.kind, found.count, found.names[0]) == ("rocm", 2, "aldebaran")


def intel(root: Path, tiles: int, kind: str = "0x038000") -> None:
    for card in range(2):
        device = root / f"sys/class/drm/card{card}/device"
        device.mkdir(parents=True)
        (device / "vendor").write_text("0x8086\n")
        (device / "class").write_text(f"{kind}\n")
        for tile in range(tiles):
            (device.parent / f"gt/gt{tile}").mkdir(parents=True)


def test_intel_tiles_are_devices_unless_composite(tmp_path: Path) -> None:
    intel(tmp_path, 2)
    assert (devices(tmp_path).kind, devices(tmp_path).count) == ("xpu", 4)
    assert devices(tmp_path, {"ZE_FLAT_DEVICE_HIERARCHY": "COMPOSITE"}).count == 2
    assert devices(tmp_path, {"ZE_AFFINITY_MASK": "0,3"}).count == 2
    listed = json.dumps({"device_list": [{"device_name": "Max 1550"}, {"device_name": "Max 1550"}]})
    assert devices(tmp_path, xpu_smi=listed).names == ("Max 1550",) * 4


def test_a_display_is_no_device(tmp_path: Path) -> None:
    intel(tmp_path, 1, kind="0x030000")
    found = devices(tmp_path)
    assert (found.kind, found.count, found.names) == ("cpu", 0, ())
    assert found.cores


@pytest.mark.parametrize("answer", ["", "garbage", "[]", '{"device_list": 3}', '{"device_list": [3]}'])
def test_nonsense_from_a_tool_is_no_device(tmp_path: Path, answer: Any) -> None:
    assert devices(tmp_path, nvidia_smi=answer, xpu_smi=answer).kind == "cpu"
