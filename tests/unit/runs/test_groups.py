"""Sweeps and chains without a cluster: what is sent, and what is on record when that goes wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import maple_parsl
from maple_parsl.cli import main
from maple_parsl.cli.sweep import combinations
from maple_parsl.errors import ComposeError, LimitError, RequestError, SubmissionError, UnknownNameError
from maple_parsl.plan import Plan
from maple_parsl.runs.group import Group, arguments
from maple_parsl.runs.run import Run
from maple_parsl.runs.state import RunState
from maple_parsl.runs.store import Store
from maple_parsl.runs.sweep import parts
from tests import cases

from .conftest import FIELDS, WORDS, FakeScheduler


@given(st.integers(1, 5000), st.integers(1, 700))
def test_parts_hold_all_and_none_is_too_large(count: int, most: int) -> None:
    sizes = parts(count, most)
    assert sum(sizes) == count
    assert max(sizes) <= most
    assert max(sizes) - min(sizes) <= 1
    assert len(sizes) == -(-count // most)


def test_a_sweep_is_one_job_with_a_run_per_element(fake: FakeScheduler, store: Store) -> None:
    sweep = maple_parsl.map([{"lr": 0.1}, {"lr": 0.2}, ["it's"]], *WORDS, parallel=2, **FIELDS)
    assert len(fake.submissions) == 1
    assert [run.job_id for run in sweep.runs] == ["1000_0", "1000_1", "1000_2"]
    script = (sweep.folder / "script.sh").read_text()
    assert "#SBATCH --array=0-2%2" in script
    assert "  2) MAPLE_PARAMS=('it'\"'\"'s') ;;" in script
    assert {run.run_dir.name for run in sweep.runs} == {"0", "1", "2"}
    assert [run.summary.title.rpartition(": ")[2] for run in sweep.runs] == ["--lr 0.1", "--lr 0.2", "it's"]
    again = Group.open(sweep.id[-12:-4])
    assert (again.kind, [run.id for run in again.runs]) == ("sweep", [run.id for run in sweep.runs])


def test_a_refused_sweep_is_refused_element_by_element(fake: FakeScheduler, store: Store) -> None:
    def refuse(plan: Plan) -> None:
        raise SubmissionError("sbatch refused the job: Invalid job array specification")

    fake.on_submit = refuse
    with pytest.raises(SubmissionError):
        maple_parsl.map([["1"], ["2"]], *WORDS, **FIELDS)
    refused = maple_parsl.runs()
    assert [run.state for run in refused] == [RunState.REFUSED] * 2
    with pytest.raises(RequestError, match="is of the sweep"):
        refused[0].resubmit()


def test_what_was_not_sent_is_on_record_as_such(fake: FakeScheduler, store: Store, home: Path) -> None:
    own = home.parent / "config" / "sites"
    own.mkdir(parents=True)
    (own / "delta.toml").write_text('extends = "delta"\n[scheduler]\nmax_array = 2\n')

    def refuse(plan: Plan) -> None:
        if fake.submissions:
            raise SubmissionError("sbatch refused the job: limit")

    fake.on_submit = refuse
    with pytest.raises(SubmissionError, match="Arrays 1 to 1 of 2 were submitted"):
        maple_parsl.map([["1"], ["2"], ["3"]], *WORDS, **FIELDS)
    assert [run.state for run in maple_parsl.runs()] == [RunState.REFUSED, RunState.PENDING, RunState.PENDING]


def test_the_cost_of_all_counts(fake: FakeScheduler, store: Store) -> None:
    with pytest.raises(LimitError, match=r"30 runs x 1 node x 00:30:00 = at most 15\.00 node-hours"):
        maple_parsl.map([[str(n)] for n in range(30)], *WORDS, **FIELDS)
    with pytest.raises(LimitError):
        maple_parsl.chain(3, *WORDS, **FIELDS, max_node_hours=1.0)
    assert not fake.submissions


def test_a_chain_waits_link_by_link(fake: FakeScheduler, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    chain = maple_parsl.chain(3, *WORDS, **FIELDS)
    assert [run.job_id for run in chain.runs] == ["1000", "1001", "1002"]
    texts = [(run.run_dir / "script.sh").read_text() for run in chain.runs]
    assert "--dependency" not in texts[0]
    assert "MAPLE_RESUME=0" in texts[0]
    assert "#SBATCH --dependency=afterany:1000\n" in texts[1]
    assert "#SBATCH --dependency=afterany:1001\n" in texts[2]
    assert "MAPLE_LINK=3 MAPLE_LINKS=3\nMAPLE_RESUME=1" in texts[2]
    assert main(["cancel", chain.id, "--json"]) == 0
    assert [row["run"] for row in json.loads(capsys.readouterr().out)["runs"]] == [run.id for run in chain.runs]
    assert fake.cancelled == ["1002", "1001", "1000"]
    assert (chain.folder / "stop").read_text() == "cancelled\n"
    assert main(["status", chain.id]) == 0
    assert "chain" in capsys.readouterr().out


def test_a_run_waits_for_runs_of_its_site_only(fake: FakeScheduler, store: Store) -> None:
    first = maple_parsl.run(*WORDS, **FIELDS)
    second = maple_parsl.run(*WORDS, **FIELDS, after=first.id, after_any=[first.id])
    assert "#SBATCH --dependency=afterok:1000,afterany:1000\n" in (second.run_dir / "script.sh").read_text()
    with pytest.raises(UnknownNameError):
        maple_parsl.run(*WORDS, **FIELDS, after="nothing")
    never = maple_parsl.run(*WORDS, **FIELDS, dry_run=True)
    with pytest.raises(RequestError, match="no job"):
        maple_parsl.run(*WORDS, **FIELDS, after=never.id)
    with pytest.raises(RequestError, match="at delta"):
        maple_parsl.run("gpt", "ddp", "local", after=first.id)
    assert Run.open(second.id).summary.group is None


def test_sites_and_machines_without_arrays_or_dependencies(fake: FakeScheduler, store: Store, home: Path) -> None:
    with pytest.raises(ComposeError, match="no scheduler"):
        maple_parsl.map([["1"]], "gpt", "ddp", "local")
    own = home.parent / "config" / "sites"
    own.mkdir(parents=True)
    (own / "delta.toml").write_text('extends = "delta"\n[scheduler]\nchain = false\n')
    with pytest.raises(ComposeError, match="lets no job wait"):
        maple_parsl.chain(2, *WORDS, **FIELDS)
    (own / "delta.toml").write_text('extends = "delta"\n[scheduler]\nchain = false\nrequeue = false\n')
    with pytest.raises(ComposeError, match="lets no job wait"):
        maple_parsl.chain(None, *WORDS, **FIELDS)
    (own / "delta.toml").write_text('extends = "delta"\n[scheduler]\nchain = false\nrequeue = true\n')
    (only,) = maple_parsl.chain(None, *WORDS, **FIELDS).runs
    assert "#SBATCH --requeue\n" in (only.run_dir / "script.sh").read_text()


def test_parameters_as_arguments_and_their_combinations(tmp_path: Path) -> None:
    assert arguments({"lr": 0.1, "amp": True, "debug": False, "x": None}) == ("--lr", "0.1", "--amp")
    for wrong in ("lr", 7, ["a\nb"]):
        with pytest.raises(RequestError):
            arguments(wrong)  # type: ignore[arg-type]
    made = combinations(["lr=1e-3,3e-4", "seed=0-2"])
    assert len(made) == 6
    assert made[1] == {"lr": "1e-3", "seed": 1}
    (tmp_path / "p.jsonl").write_text('{"lr": 1}\n{"lr": 2}\n')
    assert combinations([f"@{tmp_path / 'p.jsonl'}"]) == [{"lr": 1}, {"lr": 2}]
    for wrong in ("lr", "lr=", "=1", "seed=5-2", "seed=0-999999999", f"@{tmp_path}/none"):
        with pytest.raises(RequestError):
            combinations([wrong])


@pytest.mark.parametrize("case", ["polaris", "derecho"])
def test_an_array_in_pbs_words(case: str) -> None:
    from maple_parsl.plan import Array, RunPlace

    plan = cases.plan(case).model_copy(update={"array": Array(params=(("1",), ("2",)), parallel=1)})
    script = plan.at(RunPlace(run_id="run-0001", run_dir="/shared/r", work_dir="/shared")).script
    assert "#PBS -J 0-1%1\n" in script
    assert "#PBS -o /shared/r/\n" in script
    assert "export MAPLE_ELEMENT=${PBS_ARRAY_INDEX:-0}" in script
    assert "MAPLE_RUN_DIR=/shared/r/$MAPLE_ELEMENT\n" in script


@pytest.mark.parametrize("template", ["torchrun", "plain"])
@pytest.mark.parametrize("case", ["delta", "polaris", "sophia"])
def test_scripts_of_sweeps_and_chains_are_sound(case: str, template: str) -> None:
    from maple_parsl.checking import inspect
    from maple_parsl.plan import Array, Link, RunPlace

    stated = {"model": None, "script": "train.py", "secrets": {"KEY": "~/key"}, "inputs": ["data"]}
    plan = cases.plan(case, template=template, **stated)
    place = RunPlace(run_id="run-0001", run_dir="/shared/r/1", work_dir="/shared")
    array = Array(params=(("--lr", "1"), ("it's",)))
    link = Link(number=2, of=3, folder="/shared/r", chain="run-0001")
    for made in (plan.model_copy(update={"array": array}), plan.model_copy(update={"link": link})):
        script = made.at(place).script
        words = [str(Path(sys.executable).with_name("shellcheck")), "-s", "bash", "-S", "warning", "-"]
        said = subprocess.run(words, input=script, text=True, capture_output=True, timeout=60, check=False)
        assert said.returncode == 0, said.stdout
        findings = inspect(script, cases.site(made.site)).findings
        assert not [found for found in findings if found.severity != "note"]
