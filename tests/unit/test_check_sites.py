"""Sites are guessed from evidence only; scripts of Maple and ordinary ones raise nothing; the pages are fresh."""

from __future__ import annotations

import pytest

from maple_parsl.catalogue import Catalogue
from maple_parsl.checking import inspect
from maple_parsl.checking.site_guess import Guess, guess
from maple_parsl.script.reader import read
from maple_parsl.site import Site
from tests import cases
from tests.tools import rule_docs

ORDINARY = {
    "a cluster of its own": "#!/bin/bash\n#SBATCH -p gpu\n#SBATCH -A lab\nmodule load anaconda3 cuda\nsrun x\n",
    "bare": "#!/bin/bash\n#SBATCH -N 1\nsrun hostname\n",
    "words": "#!/bin/bash\n#SBATCH -p debug\n# the delta of both, on the frontier, aurora\nsrun x\n",
    "no directives": "#!/bin/bash\npython train.py --data /eagle/x\n",
    "pbs of its own": "#!/bin/bash\n#PBS -q prod\n#PBS -l select=1:ngpus=4\nmodule load conda\nmpiexec -n 4 x\n",
    "two sites in one": "#!/bin/bash\n#SBATCH -A a-delta-gpu\n#SBATCH -p ghx4\nsrun x\n",
}


def guessed(text: str) -> Guess:
    sites: list[Site] = [Catalogue.load().get(name).site for name in Catalogue.load().names()]
    return guess(read(text), sites)


@pytest.mark.parametrize("name", ORDINARY)
def test_no_site_without_evidence(name: str) -> None:
    assert guessed(ORDINARY[name]).site is None


@pytest.mark.parametrize(
    "text,site",
    [
        ("#!/bin/bash\n#SBATCH -A abcd-delta-gpu\n#SBATCH -p gpuA100x4\nsrun x\n", "delta"),
        ("#!/bin/bash -l\n#PBS -q debug\n#PBS -l select=2:system=polaris\n#PBS -l filesystems=home:eagle\n", "polaris"),
        ("#!/bin/bash\n#SBATCH -p batch\nmodule load rccl-net-plugin\ncd /lustre/orion/x\nsrun x\n", "frontier"),
        ("#!/bin/bash\n#PBS -q debug\n#PBS -l filesystems=flare\nmodule load frameworks\nmpiexec x\n", "aurora"),
    ],
)
def test_a_site_with_evidence(text: str, site: str) -> None:
    found = guessed(text)
    assert found.site is not None
    assert found.site.name == site
    assert len(found.evidence) >= 2


@pytest.mark.parametrize("case", [case for case in cases.SITES if case != "local"])
def test_a_script_of_maple_is_never_taken_for_another_site(case: str) -> None:
    found = guessed(cases.plan(case).script)
    assert found.site is None or found.site.name == cases.SITES[case]["site"]


@pytest.mark.parametrize("case,paradigm", cases.CASES)
def test_scripts_of_maple_have_no_finding(case: str, paradigm: str) -> None:
    site = cases.site(cases.SITES[case]["site"])
    assert not inspect(cases.plan(case, paradigm).script, site).findings


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_scripts_are_readable(name: str) -> None:
    assert not [f for f in inspect(ORDINARY[name]).findings if f.rule == "unreadable-script"]


def test_pages_of_the_rules_are_fresh() -> None:
    assert rule_docs.stale() == [], "python -m tests.tools.rule_docs writes them"
