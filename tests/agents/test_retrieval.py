"""Templates are ranked by facts, then by likeness to the words."""

from __future__ import annotations

from maple_parsl.request import Request
from maple_parsl.retrieval import retrieve
from maple_parsl.template import Template
from tests import cases

OWN = Template.model_validate(
    {
        "name": "nanotron",
        "title": "Nanotron of the weather group",
        "framework": "nanotron",
        "style": "per-device",
        "paradigms": {"ddp": {}},
        "source": "the group's wiki",
    }
)


def names(words: str = "", **fields: object) -> list[tuple[str, bool]]:
    templates = {**cases.templates(), OWN.name: OWN}
    request = Request.of(site="polaris", **fields)
    return [(match.name, match.fits) for match in retrieve(request, cases.site("polaris"), templates, words)]


def test_facts_come_first() -> None:
    found = names(paradigm="zero", template="deepspeed")
    assert found[0] == ("deepspeed", True)
    assert ("nanotron", False) in found


def test_every_match_has_its_reasons() -> None:
    matches = retrieve(Request.of(paradigm="tp"), cases.site("polaris"), cases.templates())
    assert all(match.reasons if match.fits else match.against for match in matches)


def test_words_order_what_facts_leave_open_and_find_templates_of_ones_own() -> None:
    assert names("the nanotron thing of the weather group, please", paradigm="ddp")[0] == ("nanotron", True)


def test_where_nothing_fits_the_nearest_comes_first() -> None:
    found = retrieve(Request.of(paradigm="3d", template="nanotron"), None, {OWN.name: OWN, **cases.templates()})
    assert not found[0].fits
    assert found[0].against
