"""Following, waiting, cancelling; places, snapshots, costs, logs."""

from __future__ import annotations

import json
import os
import subprocess
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import maple_parsl
from maple_parsl.api import plan as make_plan
from maple_parsl.catalogue import Catalogue
from maple_parsl.errors import ComposeError, LimitError, NotHereError, RequestError, RunFailedError, StoreError
from maple_parsl.plan import Plan
from maple_parsl.runs import cost, logs
from maple_parsl.runs.place import node_local, place
from maple_parsl.runs.run import Run
from maple_parsl.runs.snapshot import snapshot
from maple_parsl.runs.state import RunState
from maple_parsl.runs.store import Store
from maple_parsl.schedulers.base import JobState
from maple_parsl.site import Defaults

from .conftest import FIELDS, WORDS, FakeScheduler


def ends(run: Run, code: int, reason: str, first: dict[str, Any] | None = None) -> None:
    record = {"job_id": run.job_id, "attempt": 1, "code": code, "reason": reason, "signal": None}
    more = {"first_failure": first, "started": time.time() - 60, "ended": time.time(), "hosts": "n1"}
    (run.run_dir / "exit.json").write_text(json.dumps({**record, **more}))


def test_outcome_future_and_check(fake: FakeScheduler, store: Store) -> None:
    run = maple_parsl.run(*WORDS, **FIELDS)
    future = run.future
    assert isinstance(future, Future)
    assert not future.cancel()
    with pytest.raises(TimeoutError):
        run.result(0.01)
    assert run.wait(0.01) is False
    rows = [{"event": "step", "step": n, "loss": 3.0 - n, "samples_per_s": 10.0} for n in (1, 2)]
    (run.run_dir / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + "{half")
    ends(run, 7, "failed", {"rank": 3, "node_rank": 1, "host": "n2", "code": 7})
    outcome = run.result(10)
    assert (outcome.state, outcome.code, outcome.rank, outcome.host) == (RunState.FAILED, 7, 3, "n2")
    assert outcome.metrics is not None
    assert (outcome.metrics.first_loss, outcome.metrics.last_loss) == (2.0, 1.0)
    text = str(outcome)
    assert "rank 3 on n2 failed first, with code 7" in text
    assert "loss 2.0000 -> 1.0000" in text
    with pytest.raises(RunFailedError, match="rank 3"):
        run.result(1, check=True)
    with pytest.raises(RunFailedError):
        future.result(5)
    assert Run.open(run.id).outcome() == outcome


def test_a_purged_run_directory_takes_no_outcome_away(fake: FakeScheduler, store: Store) -> None:
    import shutil

    run = maple_parsl.run(*WORDS, **FIELDS)
    ends(run, 0, "done")
    assert run.result(10).ok
    shutil.rmtree(run.run_dir)
    again = Run.open(run.id)
    assert again.result(5).ok
    assert "gone" in (logs.missing(again.run_dir) or "")
    assert again.logs() == ""
    other = maple_parsl.run(*WORDS, **FIELDS)
    shutil.rmtree(other.run_dir)
    assert "run directory is gone" in other.status().explanation


def test_cancel_is_noted_first_and_may_be_repeated(fake: FakeScheduler, store: Store) -> None:
    run = maple_parsl.run(*WORDS, **FIELDS)
    run.cancel()
    run.cancel()
    assert set(fake.cancelled) == {run.job_id}
    assert run.entry.read("cancelled.json")
    ends(run, 143, "terminated")
    fake.put(run.job_id or "", JobState.cancelled)
    run._backend._poller.seconds = 0.0
    run._backend._poller._looked = 0.0
    assert run.result(10).state is RunState.CANCELLED
    count = len(fake.cancelled)
    run.cancel()
    assert len(fake.cancelled) == count


def test_a_job_started_again_after_its_outcome_is_followed(fake: FakeScheduler, store: Store) -> None:
    run = maple_parsl.run(*WORDS, **FIELDS)
    (run.run_dir / "started.json").write_text(json.dumps({"job_id": "1000", "attempt": 1, "host": "n", "started": 5}))
    ends(run, 7, "failed", {"rank": 0, "code": 7})
    assert run.result(10).state is RunState.FAILED
    os.unlink(run.run_dir / "exit.json")
    again = {"job_id": "1000", "attempt": 2, "host": "n", "started": time.time()}
    (run.run_dir / "started.json").write_text(json.dumps(again))
    assert run.outcome() is None
    assert run.state is RunState.RUNNING


def test_dry_run_has_a_script_and_no_job(fake: FakeScheduler, store: Store) -> None:
    run = maple_parsl.run(*WORDS, dry_run=True, **FIELDS)
    assert (run.run_dir / "script.sh").exists()
    assert fake.submissions == []
    assert run.job_id is None
    assert run.state is RunState.NOT_SUBMITTED
    with pytest.raises(LimitError, match=r"the limit is 0\.001 node-hours"):
        maple_parsl.run(*WORDS, dry_run=True, max_node_hours=0.001, **FIELDS)


def test_run_directories_are_apart_from_the_records(fake: FakeScheduler, store: Store) -> None:
    for dry_run in (False, True):
        with pytest.raises(RequestError, match="choose another folder: --run-root"):
            maple_parsl.run(*WORDS, dry_run=dry_run, run_root=str(store.runs), **FIELDS)
    assert fake.submissions == []


def test_not_here(fake: FakeScheduler, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAPLE_SITE", "anvil")
    with pytest.raises(NotHereError, match=r"anvil.*not delta.*--script-only"):
        maple_parsl.run(*WORDS, **FIELDS)
    monkeypatch.setenv("MAPLE_SITE", "delta")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NotHereError, match="has no sbatch"):
        maple_parsl.run(*WORDS, **FIELDS)
    with pytest.raises(NotHereError, match="in none; start one with salloc"):
        maple_parsl.run(*WORDS, here=True, **FIELDS)


def test_findings_of_severity_error_stop_it(fake: FakeScheduler, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from maple_parsl.api import composing
    from maple_parsl.finding import Finding

    fault = Finding.model_validate({"rule": "r", "class": "C", "severity": "error", "message": "no such GPU"})
    real = composing.composed

    def faulty(*args: Any, **more: Any) -> Any:
        made, record = real(*args, **more)
        return made.model_copy(update={"findings": (fault,)}), record

    monkeypatch.setattr(composing, "composed", faulty)
    with pytest.raises(ComposeError, match="no such GPU"):
        maple_parsl.run(*WORDS, **FIELDS)
    assert maple_parsl.run(*WORDS, force=True, **FIELDS).job_id


@pytest.mark.parametrize("name", ["train.py", "folder"])
def test_the_script_must_be_there(fake: FakeScheduler, store: Store, name: str) -> None:
    Path("folder").mkdir()
    Path("tarin.py").write_text("")
    with pytest.raises(RequestError, match="script") as caught:
        maple_parsl.run(request=maple_parsl.Request.of(site="delta", script=name, **FIELDS))
    if name == "train.py":
        assert "did you mean tarin.py" in str(caught.value)
    assert fake.submissions == []
    assert not Path("maple-runs").exists()


# --- Places


def test_node_local_folders_are_refused_for_several_nodes(home: Path, tmp_path: Path) -> None:
    site = Catalogue.load().get("delta").site
    fields = {**FIELDS, "nodes": 2, "gpus_per_node": 4}
    two = make_plan(*WORDS, **fields)
    with pytest.raises(RequestError, match=r"under /tmp.*--run-root"):
        place(two, site, cwd=Path("/scratch/me"), run_root="/tmp/runs")
    with pytest.raises(RequestError, match="working directory"):
        place(two, site, cwd=Path("/dev/shm/me"), run_root="/scratch/me")
    link = tmp_path / "looks-shared"
    link.symlink_to("/dev/shm")
    assert node_local(link / "x") in ("/dev/shm", "/tmp")
    found = place(two, site, cwd=Path("/scratch/me"), environ={})
    assert found.run_dir == f"/scratch/me/maple-runs/{found.run_id}"
    one = make_plan(*WORDS, **FIELDS)
    assert place(one, site, cwd=Path("/tmp/me"), environ={}).work_dir == "/tmp/me"


def test_where_the_root_comes_from(home: Path) -> None:
    record = Catalogue.load().get("delta").site
    site = record.model_copy(update={"defaults": Defaults(run_root="/shared/$USER/runs")})
    made = make_plan(*WORDS, **FIELDS)
    environ = {"USER": "me"}
    assert place(made, site, cwd=Path("/w"), environ=environ).run_dir.startswith("/shared/me/runs/")
    environ["MAPLE_RUN_ROOT"] = "/env"
    assert place(made, site, cwd=Path("/w"), environ=environ).run_dir.startswith("/env/")
    assert place(made, site, cwd=Path("/w"), environ=environ, run_root="x").run_dir.startswith("/w/x/")
    with pytest.raises(RequestError, match="not set"):
        place(made, site, cwd=Path("/w"), environ={})


@pytest.mark.parametrize("root", ['/a"b', "/a$b", "/a`b", "/a\nb", "/a'b", "/a\\b"])
def test_characters_no_directive_carries(home: Path, root: str) -> None:
    site = Catalogue.load().get("delta").site
    with pytest.raises(RequestError):
        place(make_plan(*WORDS, **FIELDS), site, cwd=Path("/w"), run_root=root, environ={})


# --- Snapshots


def git(*words: str, cwd: Path) -> None:
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=cwd, check=True, capture_output=True
    )


@pytest.mark.parametrize("tracked", [True, False])
def test_snapshot_of_a_tree(tmp_path: Path, tracked: bool) -> None:
    tree, copy = tmp_path / "tree", tmp_path / "tree" / "maple-runs" / "id" / "snapshot"
    (tree / "sub").mkdir(parents=True)
    (tree / "train.py").write_text("old")
    (tree / "sub" / "new file.txt").write_text("untracked")
    (tree / "link").symlink_to("sub/new file.txt")
    (tree / "absolute").symlink_to(tree / "train.py")
    (tree / "outside").symlink_to("../elsewhere")
    (tree / "maple-runs" / "other").mkdir(parents=True)
    (tree / "maple-runs" / "other" / "log.txt").write_text("x" * 1000)
    if tracked:
        (tree / ".gitignore").write_text("big\n")
        (tree / "big").write_text("x" * 100_000)
        git("init", "-q", cwd=tree)
        git("add", "train.py", cwd=tree)
        git("commit", "-qm", "a", cwd=tree)
    (tree / "train.py").write_text("edited")
    snapshot(tree, copy)
    (tree / "train.py").write_text("later")
    assert (copy / "train.py").read_text() == "edited"
    assert (copy / "link").read_text() == "untracked"
    assert (copy / "absolute").read_text() == "edited"
    assert os.readlink(copy / "outside") == str(tmp_path / "elsewhere")
    assert not (copy / "maple-runs").exists()
    assert not (copy / ".git").exists()
    assert not (copy / "big").exists()


def test_snapshot_has_a_cap(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "data").write_bytes(b"x" * 5000)
    with pytest.raises(RequestError, match="MAPLE_SNAPSHOT_MIB"):
        snapshot(tmp_path / "a", tmp_path / "b", cap=4000)


# --- Cost


def test_cost_limits(home: Path) -> None:
    ten = make_plan(*WORDS, **{**FIELDS, "nodes": 4, "gpus_per_node": 4, "walltime": "5h"})
    assert "= at most 20.00 node-hours" in str(cost.Cost.of(ten))
    with pytest.raises(LimitError, match="--yes"):
        cost.check(ten, Defaults())
    cost.check(ten, Defaults(), yes=True)
    cost.check(ten, Defaults(ask_above_node_hours=20))
    asked: list[str] = []
    with pytest.raises(LimitError, match="not confirmed"):
        cost.check(ten, Defaults(), ask=lambda text: bool(asked.append(text)))
    assert "20.00 node-hours" in asked[0]
    cost.check(ten, Defaults(), ask=lambda text: True)
    for limits in ({"max_node_hours": 19.9}, {"max_node_hours": 0}):
        with pytest.raises(LimitError, match="limit is"):
            cost.check(ten, Defaults(), yes=True, **limits)
    with pytest.raises(LimitError):
        cost.check(ten, Defaults(max_node_hours=5), max_node_hours=100, yes=True)
    for wrong in (float("nan"), -1.0, float("inf")):
        with pytest.raises(RequestError):
            cost.check(ten, Defaults(), max_node_hours=wrong)


def test_an_unknown_cost_is_not_a_small_one(slurm_plan: Plan) -> None:
    untold = slurm_plan.model_copy(update={"node_hours": None, "walltime": None})
    with pytest.raises(LimitError):
        cost.check(untold, Defaults())
    with pytest.raises(LimitError):
        cost.check(untold, Defaults(), yes=True, max_node_hours=1000)


# --- Logs


@given(st.text(st.characters(codec="utf-8"), max_size=60), st.integers(1, 7))
def test_a_log_read_in_parts_is_the_log(text: str, limit: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "log.txt").write_text(text, encoding="utf-8", newline="")
        offset, parts = 0, []
        while part := logs.read(Path(folder), offset, limit=max(4, limit)):
            parts.append(part)
            offset = part.offset
        assert "".join(parts) == text


def test_logs_from_the_end_and_of_other_bytes(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_bytes(b"abc\xffdef\xc3")
    part = logs.read(tmp_path)
    assert part == "abc\ufffddef"
    assert part.offset == 7
    assert logs.read(tmp_path, -5) == "\ufffddef"
    assert logs.read(tmp_path / "none") == ""


def test_follow_ends_with_the_run(fake: FakeScheduler, store: Store) -> None:
    run = maple_parsl.run(*WORDS, **FIELDS)
    (run.run_dir / "log.txt").write_text("one\n")
    parts = run.follow(every=0.01)
    assert next(parts) == "one\n"
    with open(run.run_dir / "log.txt", "a") as file:
        file.write("two\n")
    ends(run, 0, "done")
    assert "".join(parts) == "two\n"


def test_two_stores_do_not_mix(fake: FakeScheduler, store: Store, tmp_path: Path) -> None:
    run = maple_parsl.run(*WORDS, **FIELDS)
    with pytest.raises(maple_parsl.MapleError):
        Run.open(run.id, Store(tmp_path / "other"))
    (run.entry.folder / "plan.json").write_text("{}")
    with pytest.raises(StoreError, match=r"plan\.json is damaged"):
        _ = Run.open(run.id).plan
