"""Correction of plans: typed changes of the request, said, bounded, and honest where there is none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maple_parsl.compose import compose
from maple_parsl.correction import PlanCorrection, correct_plan
from maple_parsl.correction.plan import ROUNDS
from maple_parsl.diagnosis import Diagnosis, LogSource, diagnose
from maple_parsl.finding import Finding
from maple_parsl.plan import Plan
from maple_parsl.request import Request
from tests.cases import SITES, request, site, templates


def corrected(case: str, found: Any = None, **fields: Any) -> PlanCorrection:
    stated = request(case, **fields)
    facts = site(SITES[case]["site"])

    def composing(made: Request) -> Plan:
        return compose(made, facts, templates())

    return correct_plan(stated, facts, composing, found)


def log(text: str, accounting: str | None = None) -> Diagnosis:
    return diagnose([LogSource.of_text("log.txt", text)], accounting=accounting)


def changes(made: PlanCorrection) -> dict[str, tuple[str | None, str | None]]:
    return {change.field: (change.before, change.after) for change in made.changes}


def test_a_sound_plan_stays_as_it_is() -> None:
    made = corrected("polaris")
    assert made.correct
    assert made.changes == ()
    assert made.rounds == 1


def test_a_timeout_gets_twice_the_time_and_says_so() -> None:
    made = corrected("polaris", log("step 100 loss 2\n", "State=TIMEOUT"), queue="debug", walltime="20m")
    assert made.correct
    assert changes(made) == {"walltime": ("00:20:00", "00:40:00")}
    assert [change.field for change in made.changed_statements] == ["walltime"]
    assert made.flags == "--walltime 00:40:00"
    assert made.plan
    assert "#PBS -l walltime=00:40:00" in made.plan.script


def test_more_time_stops_at_the_limit_of_the_queue() -> None:
    made = corrected("polaris", log("", "State=TIMEOUT"), queue="debug", walltime="45m")
    assert changes(made) == {"walltime": ("00:45:00", "01:00:00")}
    again = corrected("polaris", log("", "State=TIMEOUT"), queue="debug", walltime="1h")
    assert not again.correct
    assert again.plan is None
    assert "is the most its queue allows" in again.cannot[0]


def test_host_memory_is_doubled_up_to_the_node() -> None:
    killed = log("slurmstepd: error: Detected 1 oom_kill event in StepId=1.0.\n")
    made = corrected("expanse", killed, memory="64G", gpus_per_node=1)
    assert made.correct
    assert changes(made)["memory"] == ("64G", "128G")


def test_device_memory_is_the_programs() -> None:
    made = corrected("polaris", log("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"))
    assert not made.correct
    assert made.plan is None
    assert "the program is at fault" in made.cannot[0]


def test_preemption_asks_for_requeue_which_nobody_had_stated() -> None:
    made = corrected("delta", log("slurmstepd: error: *** JOB 1 ON n CANCELLED AT x DUE TO PREEMPTION ***\n"))
    assert changes(made) == {"requeue": (None, "True")}
    assert made.changed_statements == ()
    assert made.flags == "--requeue"


def test_too_many_devices_become_more_nodes() -> None:
    made = corrected("polaris", gpus_per_node=8, nodes=1)
    assert changes(made) == {"gpus_per_node": ("8", "4"), "nodes": ("1", "2")}
    assert made.plan
    assert made.plan.shape.world_size == 8


def test_variables_of_the_launch_are_taken_out() -> None:
    made = corrected("polaris", env={"MASTER_ADDR": "n1", "A": "b"})
    assert changes(made) == {"env": ("MASTER_ADDR=n1 A=b", "A=b")}
    assert made.plan
    assert made.plan.request.env == {"A": "b"}


def test_a_network_variable_of_another_site_gives_way() -> None:
    text = "NCCL WARN Bootstrap : no socket interface found\n"
    made = corrected("polaris", log(text), env={"NCCL_SOCKET_IFNAME": "eth0"})
    assert changes(made) == {"env": ("NCCL_SOCKET_IFNAME=eth0", None)}


def test_a_queue_that_does_not_take_the_job_is_not_replaced_by_a_guess() -> None:
    made = corrected("perlmutter", queue="debug", walltime="3h")
    assert not made.correct
    assert made.plan is None
    assert any("--queue" in reason or "queues that fit" in reason or "name one of" in reason for reason in made.cannot)
    assert made.changes == ()


def test_nothing_missing_is_invented() -> None:
    made = corrected("polaris", account=None, walltime=None)
    assert made.plan is None
    assert made.changes == ()
    assert any("walltime" in reason for reason in made.cannot)
    assert any("account" in reason for reason in made.cannot)


def test_a_finding_nothing_mends_is_said() -> None:
    finding = Finding.model_validate(
        {"rule": "x", "class": "ENV_NOT_ACTIVATED", "severity": "error", "message": "no torch", "fix": "state --venv"}
    )
    made = corrected("polaris", [finding])
    assert made.cannot == ("no torch; state --venv",)


@settings(max_examples=40, deadline=None)
@given(
    nodes=st.integers(1, 12),
    gpus=st.one_of(st.none(), st.integers(1, 12)),
    minutes=st.integers(1, 400),
    cpus=st.one_of(st.none(), st.integers(1, 300)),
    case=st.sampled_from(("polaris", "perlmutter", "vista", "frontier")),
)
def test_whatever_is_asked_for(nodes: int, gpus: int | None, minutes: int, cpus: int | None, case: str) -> None:
    """A plan that passes and every difference said, or a reason; never more than three rounds."""
    made = corrected(case, nodes=nodes, gpus_per_node=gpus, walltime=f"{minutes}m", cpus=cpus)
    assert made.rounds <= ROUNDS
    assert (made.plan is None) == bool(made.cannot)
    if made.plan is None:
        return
    stated = request(case, nodes=nodes, gpus_per_node=gpus, walltime=f"{minutes}m", cpus=cpus)
    told = {change.field for change in made.changes}
    different = {name for name in Request.model_fields if getattr(stated, name) != getattr(made.plan.request, name)}
    assert different == told
    assert all(change.why for change in made.changes)


@pytest.mark.parametrize("text", ["", "all is well\n"])
def test_a_log_that_says_nothing_changes_nothing(text: str) -> None:
    made = corrected("polaris", log(text))
    assert made.changes == ()
