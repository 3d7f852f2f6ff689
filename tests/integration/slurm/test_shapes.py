"""Controllers set up from shapes take and refuse scripts as the shapes say, at full size."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.testbeds.slurm import NodeGroup, PartitionShape, SiteShape, Testbed
from tests.testbeds.slurm.examples import FRONTIER_LIKE, PERLMUTTER_LIKE, TACC_LIKE
from tests.testbeds.slurm.fixtures import require_testbed
from tests.testbeds.slurm.shape_regex import lua_patterns

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(120)]

POLICY = "Job violates accounting/QOS policy"
NOT_AVAILABLE = "Requested node configuration is not available"
TIME = "Requested time limit is invalid"
GH = "-p gh -N 2 -n 2 -t 60"
P = "-A m1234 -C gpu -q regular -t 30"
F = "-A abc123"
TAKEN = None

CASES: dict[str, tuple[SiteShape, list[tuple[str, str | None]]]] = {
    "tacc": (
        TACC_LIKE,
        [
            (GH, TAKEN),
            ("-p gh -N 64 --ntasks-per-node=1 -t 48:00:00", TAKEN),
            ("-p gh -N 65 -n 65 -t 60", "Node count specification invalid"),
            ("-p gh-dev -N 2 -n 2 -t 2:01:00", TIME),
            ("-p gg -N 2 -n 288 -t 60", TAKEN),
            ("-p nope -N 2 -n 2 -t 60", "Invalid partition name specified"),
            ("-N 2 -n 2 -t 60", "--partition is required"),
            ("-p gh -N 2 -n 2", "--time is required"),
            ("-p gh -N 2 -t 60", "--ntasks or --ntasks-per-node is required"),
            (f"{GH} --gres=gpu:1", "--gres is not allowed: GPUs come with the whole node"),
            (f"{GH} --gpus-per-node=1", "--gpus-per-node is not allowed"),
            (f"{GH} --mem=0", "--mem is not allowed"),
            (f"{GH} --cpus-per-task=73", NOT_AVAILABLE),
        ],
    ),
    "perlmutter": (
        PERLMUTTER_LIKE,
        [
            (f"{P} -N 1792 --gpus-per-node=4 --ntasks-per-node=4 --cpus-per-task=32", TAKEN),
            (f"{P} -N 256 -C gpu&hbm80g --gpus-per-node=4", TAKEN),
            (f"{P} -N 257 -C gpu&hbm80g --gpus-per-node=4", NOT_AVAILABLE),
            (f"{P} -N 1793", "Node count specification invalid"),
            (f"{P} -N 2 --gpus-per-node=5", NOT_AVAILABLE),
            (f"{P} -N 2 --gpus-per-node=h100:4", NOT_AVAILABLE),
            (f"{P} -N 2 --gres=gpu:4", "--gres is not allowed"),
            ("-A m1234 -q regular -t 30 -N 2", "Job request does not match any supported policy"),
            ("-C gpu -q regular -t 30 -N 2", "Invalid account or account/partition combination"),
            ("-A m1234 -C gpu -q regular -N 2", "--time is required"),
            ("-A m1234 -C gpu -q nope -t 30 -N 2", "Invalid qos specification"),
            ("-A m1234 -C gpu -q debug -t 31 -N 2", POLICY),
            ("-A m1234 -C gpu -t 31 -N 2", POLICY),
            ("-A m1234 -C gpu -q debug -t 30 -N 9", POLICY),
        ],
    ),
    "frontier": (
        FRONTIER_LIKE,
        [
            (f"{F} -N 91 -t 120", TAKEN),
            (f"{F} -N 91 -t 121", TIME),
            (f"{F} -N 92 -t 360 -S 0", TAKEN),
            (f"{F} -N 9472 -t 720", TAKEN),
            (f"{F} -N 9473 -t 720", "Node count specification invalid"),
            (f"{F} -N 184 -t 721", TIME),
            (f"{F} -N 9857 -p extended -t 60", "Node count specification invalid"),
            (f"{F} -N 64 -t 1440 -p extended", TAKEN),
            (f"{F} -N 64 -t 1440 -p extended -q debug", POLICY),
            ("-A someone -N 2 -t 60", "Invalid account or account/partition combination"),
            ("-N 2 -t 60", "Invalid account or account/partition combination"),
        ],
    ),
}


@pytest.fixture(scope="module", params=list(CASES))
def judged(request: pytest.FixtureRequest) -> Iterator[tuple[Testbed, list[tuple[str, str | None]]]]:
    require_testbed()
    shape, cases = CASES[request.param]
    with Testbed.from_shape(shape) as bed:
        yield bed, cases


def test_the_whole_site_is_there(judged: tuple[Testbed, object]) -> None:
    bed, _ = judged
    assert bed.shape is not None
    listed = bed.run(["scontrol", "show", "nodes", "-o", "--all"]).stdout.splitlines()
    assert len([line for line in listed if line.startswith("NodeName=")]) == bed.shape.node_count


def test_scripts_are_taken_and_refused(judged: tuple[Testbed, list[tuple[str, str | None]]]) -> None:
    bed, cases = judged
    wrong = []
    for options, refusal in cases:
        said = bed.test_only("#!/bin/bash\nhostname\n", *options.split())
        as_told = said.returncode == 0 if refusal is None else said.returncode == 1 and refusal in said.stderr
        if not as_told:
            wrong.append((options, refusal, said.returncode, said.stderr))
    assert wrong == []


def test_directives_count_as_options(judged: tuple[Testbed, list[tuple[str, str | None]]]) -> None:
    bed, cases = judged
    options, _ = cases[0]
    lines = [f"#SBATCH {words}" for words in options.split(" -")]
    script = "\n".join(["#!/bin/bash", lines[0], *(f"#SBATCH -{words}" for words in options.split(" -")[1:]), ""])
    assert bed.test_only(script).returncode == 0, script


def test_a_shape_must_hold_together() -> None:
    group = NodeGroup("a", "a", 2, 8, 1000)
    with pytest.raises(ValueError, match="unknown or missing"):
        SiteShape("x", (group,), (PartitionShape("p", ("b",)),))


@pytest.mark.parametrize(
    ("regex", "patterns"),
    [
        (r"^m\d{4}(_g)?$", ["^m[%d][%d][%d][%d]$", "^m[%d][%d][%d][%d]_g$"]),
        (r"-(gpu|cpu)$", ["%-gpu$", "%-cpu$"]),
        (r"^[a-z]{2,3}\d+", ["^[a-z][a-z][a-z]?[%d][%d]*"]),
    ],
)
def test_regular_expressions_become_lua_patterns(regex: str, patterns: list[str]) -> None:
    assert lua_patterns(regex) == patterns
    with pytest.raises(ValueError, match="repeated group"):
        lua_patterns("(ab)+")
