"""Every script Maple writes for a Slurm site is taken by a real slurmctld shaped like that site.

The shape is made from the catalogue, so this shows that script, catalogue and Slurm agree with each other.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from maple_parsl.request import PARADIGMS
from tests import cases
from tests.testbeds.slurm import Testbed
from tests.testbeds.slurm.fixtures import require_testbed
from tests.testbeds.slurm.from_catalogue import shape_of

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(180)]

SLURM = [case for case, fields in cases.SITES.items() if cases.site(fields["site"]).scheduler.kind == "slurm"]


@pytest.fixture(scope="module", params=sorted({cases.SITES[case]["site"] for case in SLURM}))
def controller(request: pytest.FixtureRequest) -> Iterator[tuple[str, Testbed]]:
    require_testbed()
    with Testbed.from_shape(shape_of(cases.site(request.param))) as bed:
        yield request.param, bed


def test_scripts_are_taken_and_faults_refused(controller: tuple[str, Testbed]) -> None:
    name, bed = controller
    for case in (case for case in SLURM if cases.SITES[case]["site"] == name):
        for paradigm in PARADIGMS:
            plan = cases.plan(case, paradigm)
            answer = bed.test_only(plan.script)
            assert answer.returncode == 0, f"{case} {paradigm}: {answer.stderr}"
        whole = cases.plan(case, "ddp").script
        site, queue = cases.site(name), cases.plan(case, "ddp").queue
        entry = site.queue(queue or "")
        assert entry is not None
        bad = {"unknown partition or qos": whole.replace(f"={entry.qos or entry.partition or queue}\n", "=nosuch\n")}
        most = entry.max_nodes or (max(band.max_nodes for band in entry.bands) if entry.bands else None)
        if most:
            bad["too many nodes"] = whole.replace("--nodes=2", f"--nodes={most + 1}")
        if entry.max_walltime or entry.bands:
            bad["too long"] = whole.replace("--time=00:30:00", "--time=30-00:00:00")
        for option in site.directives.forbidden:
            if option in ("--gres", "--mem", "--gpus-per-node", "--gpus"):
                value = {"--gres": "gpu:1", "--mem": "10G"}.get(option, "1")
                bad[option] = whole.replace("#SBATCH --nodes=2", f"#SBATCH --nodes=2\n#SBATCH {option}={value}")
        if any(kind.constraint for kind in site.kinds.values()):
            bad["no constraint"] = "\n".join(row for row in whole.split("\n") if "--constraint" not in row)
        if site.scheduler.account == "required":
            bad["no account"] = "\n".join(row for row in whole.split("\n") if "--account" not in row)
        for what, script in bad.items():
            assert script != whole, f"{case}: {what} changed nothing"
            answer = bed.test_only(script)
            assert answer.returncode != 0, f"{case}: {what} was taken: {answer.stderr}"


def test_partial_nodes_and_options_are_taken(controller: tuple[str, Testbed]) -> None:
    name, bed = controller
    for case in (case for case in SLURM if cases.SITES[case]["site"] == name):
        site = cases.site(name)
        shared = site.directives.gpu_request != "none" and site.kinds[cases.plan(case).kind].gpus > 1
        more: dict[str, object] = {"requeue": True, "nodes": 1}
        if shared and not site.queue(cases.plan(case).queue or "").exclusive:  # type: ignore[union-attr]
            more["gpus_per_node"] = 1
            more["memory"] = "20G"
        answer = bed.test_only(cases.plan(case, **more).script)
        assert answer.returncode == 0, f"{case}: {answer.stderr}"
