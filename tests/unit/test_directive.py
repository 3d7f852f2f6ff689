"""What a directive may hold, and that it never says another cost than the one shown."""

from __future__ import annotations

import pytest

from maple_parsl.directive import fault
from maple_parsl.errors import ComposeError, RequestError
from tests import cases


@pytest.mark.parametrize(
    "option",
    [
        *('--comment="a b"', "--nodes 2", "-N2", "-l place=scatter", "-lplace=x", "--nice -5", "-W depend=afterok:1"),
        *("--exclusive", "--exclusive user", "--comment='a # b'", "-t 5", "--mail-type=END,FAIL"),
    ],
)
def test_one_option_and_its_value(option: str) -> None:
    assert fault(option) is None


@pytest.mark.parametrize(
    "option,words",
    [
        ("--comment=a b", "stands alone"),
        ("-l place=x y", "stands alone"),
        ("--nodes=2 --time=48:00:00", "several options"),
        ("-l select=1 -l walltime=48:00:00", "several options"),
        ("--comment=a#b", "comment"),
        ('--comment="a', "not whole"),
        ("comment", "must be an option"),
        ("--comment=\u202ea", "printable"),
    ],
)
def test_what_the_scheduler_would_read_otherwise(option: str, words: str) -> None:
    assert words in (fault(option) or "")
    with pytest.raises(RequestError, match="directives"):
        cases.request("delta", directives=(option,))


@pytest.mark.parametrize(
    "case,option",
    [
        ("delta", "--time=48:00:00"),
        ("delta", "-t 48:00:00"),
        ("delta", "--nodes=50"),
        ("delta", "-N50"),
        ("polaris", "-l walltime=48:00:00"),
        ("polaris", "-l select=50:system=polaris"),
        ("polaris", "-l select=2:system=polaris+3:system=x"),
        ("polaris", "-l place=scatter,walltime=48:00:00"),
    ],
)
def test_no_directive_costs_more_than_is_shown(case: str, option: str) -> None:
    with pytest.raises(ComposeError, match="directive"):
        cases.plan(case, directives=(option,))


def test_the_same_count_may_be_said_in_ones_own_way() -> None:
    plan = cases.plan("polaris", directives=("-l select=2:system=polaris:ncpus=64",))
    assert [d.option for d in plan.directives if "select" in d.option] == ["-l select=2:system=polaris:ncpus=64"]
