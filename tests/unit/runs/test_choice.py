"""Which of several sites a run goes to, with sites that are functions."""

from __future__ import annotations

from typing import Any

import pytest

from maple_parsl.errors import RequestError, TransportError
from maple_parsl.plan import Plan
from maple_parsl.runs.away import choice
from maple_parsl.transport import Via
from tests import cases

QUEUES = "Queue: debug\n    queue_type = Execution\n    state_count = Transit:0 Queued:{} Held:0 Running:1\n"


class Way:
    """A site's scheduler, as its commands answer."""

    def __init__(self, answers: dict[str, str], up: bool = True) -> None:
        self.answers, self.up = answers, up

    def ready(self) -> None:
        if not self.up:
            raise TransportError("endpoint e is offline", certain=True)

    def call(self, op: str, *, deadline: float, **asked: Any) -> dict[str, Any]:
        if op == "status":
            return {}
        name = asked["argv"][0]
        if name not in self.answers:
            return {"started": True, "code": 1, "out": "", "err": f"{name}: no answer"}
        return {"started": True, "code": 0, "out": self.answers[name], "err": ""}


def slurm(idle: str, pending: int) -> Way:
    return Way({"sinfo": idle, "squeue": "\n".join(map(str, range(pending)))})


def chosen(monkeypatch: pytest.MonkeyPatch, **ways: Way) -> choice.Choice:
    monkeypatch.setattr(choice, "connect", lambda via: ways[via.address])

    def composed(name: str) -> Plan:
        return cases.plan(name)

    return choice.choose(tuple(ways), None, composed, lambda name: Via("globus", name))  # type: ignore[arg-type]


def test_where_it_starts_at_once_comes_first_and_the_reason_names_all(monkeypatch: pytest.MonkeyPatch) -> None:
    full = Way({"qstat": QUEUES.format(3)})
    found = chosen(monkeypatch, perlmutter=slurm("1\n", 0), vista=slurm("3\n2\n", 0), polaris=full)
    assert found.site == "vista"
    assert found.why.startswith("vista: 5 nodes idle, 0 jobs wait in gh-dev, answers in ")
    assert "perlmutter: 1 nodes idle" in found.why


@pytest.mark.parametrize(("waiting", "site"), [(2, "polaris"), (9, "vista")])
def test_of_full_sites_the_one_with_the_shorter_queue(monkeypatch: pytest.MonkeyPatch, waiting: int, site: str) -> None:
    pbs = Way({"qstat": QUEUES.format(waiting)})
    assert chosen(monkeypatch, polaris=pbs, vista=slurm("0", 5)).site == site


def test_a_site_that_is_away_or_says_nothing_is_out_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    found = chosen(monkeypatch, vista=slurm("0", 50), perlmutter=Way({}), anvil=Way({}, up=False))
    assert found.site == "vista"
    assert "perlmutter: sinfo there: sinfo: no answer" in found.why
    assert "anvil: endpoint e is offline" in found.why


def test_nobody_can_take_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RequestError, match="no site can take this: anvil: endpoint e is offline"):
        chosen(monkeypatch, anvil=Way({}, up=False))


def test_what_is_one_site_and_what_are_several() -> None:
    assert choice.listed("polaris") is None
    assert choice.listed(None) is None
    assert choice.listed("any") == ()
    assert choice.listed("a, b,a") == ("a", "b")
