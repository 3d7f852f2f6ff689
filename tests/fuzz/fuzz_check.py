"""Coverage-guided fuzzing of check: ``python tests/fuzz/fuzz_check.py CORPUS -max_total_time=3600`` (atheris).

Without atheris only :func:`one` is of use; the property tests call it.
"""

from __future__ import annotations

import json
import sys
from functools import cache

from maple_parsl.checking import FileReport, Report, inspect
from maple_parsl.checking.edits import ROUNDS, safe
from maple_parsl.checking.fixing import mend
from maple_parsl.checking.formats import as_github, as_json, as_sarif
from maple_parsl.checking.rankmap_text import map_text
from maple_parsl.checking.site_guess import guess
from maple_parsl.checking.text import Painter, as_text
from maple_parsl.site import Site


@cache
def sites() -> tuple[Site, ...]:
    """Every site."""
    from maple_parsl.catalogue import Catalogue

    catalogue = Catalogue.load({})
    return tuple(catalogue.get(name).site for name in catalogue.names())


def one(data: bytes) -> FileReport:
    """Whatever the bytes, they are checked, reported in every form, and mended; nothing raises."""
    bare = inspect(data)
    guess(bare.script, sites())
    site = sites()[sum(data[:64]) % len(sites())]
    made = inspect(data, site)
    report = Report((bare, made))
    for painter in (Painter(columns=40), Painter(columns=100)):
        text = as_text(report, painter)
        assert not any(ord(c) < 32 and c not in "\n\t" for c in text), "a control character"
    json.dumps(as_json(report))
    json.loads(as_sarif(report))
    assert as_github(report).count("\n") == sum(len(file.findings) for file in report.files)
    map_text(bare.script, site)
    if len(data) < 5000:
        mended = mend(data, lambda text: list(inspect(text, site).findings), safe, list(made.findings))
        assert len(mended.applied) <= ROUNDS * max(1, len(made.findings) + 50)
    return made


if __name__ == "__main__":
    import atheris

    atheris.instrument_all()
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
