"""The store: whole folders, private files, damage named, and crashes at every file operation."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from maple_parsl.errors import StoreError, UnknownNameError
from maple_parsl.plan import Plan, RunPlace
from maple_parsl.runs import files
from maple_parsl.runs.place import new_id
from maple_parsl.runs.store import Store, home


def placed(plan: Plan, run_id: str, folder: Path) -> Plan:
    return plan.at(RunPlace(run_id=run_id, run_dir=str(folder / run_id), work_dir=str(folder)))


def test_ids_sort_by_time_and_do_not_repeat() -> None:
    made = [new_id(1_796_000_000 + second) for second in range(50)]
    assert made == sorted(made)
    assert len({new_id(0) for _ in range(2000)}) == 2000
    assert all(re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{12}", text) for text in made)


def test_home_is_one_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    assert home({"MAPLE_HOME": "/big/me"}) == Path("/big/me")
    assert home({"XDG_DATA_HOME": "/x"}) == Path("/x/maple")
    monkeypatch.setenv("HOME", "/h")
    assert home({"XDG_DATA_HOME": "relative"}) == Path("/h/.local/share/maple")


def test_a_run_comes_back_as_it_was_and_is_private(store: Store, slurm_plan: Plan, tmp_path: Path) -> None:
    plan = placed(slurm_plan, "20261201-000000-abcdef012345", tmp_path)
    entry = store.add(plan)
    assert entry.plan() == plan
    assert store.open("abcd").plan().script == plan.script
    assert [s.id for s in store.summaries()] == [entry.id]
    assert stat.S_IMODE(entry.folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(f.stat().st_mode) for f in entry.folder.iterdir()} == {0o600}
    with pytest.raises(StoreError, match="exists already"):
        store.add(plan)


def test_prefixes(store: Store, slurm_plan: Plan, tmp_path: Path) -> None:
    for run_id in ("20261201-000000-7f3a00000000", "20261201-000001-7f3b00000000"):
        store.add(placed(slurm_plan, run_id, tmp_path))
    assert store.open("7f3a").id.endswith("7f3a00000000")
    assert store.open("maple-20261201-000001").id.endswith("7f3b00000000")
    with pytest.raises(UnknownNameError, match=r"2 runs: 20261201-000000-7f3a.*7f3b"):
        store.open("7f3")
    with pytest.raises(UnknownNameError, match="unknown run 'zzz'"):
        store.open("zzz")


@pytest.mark.parametrize("content", [b"", b"   ", b"{", b"[1]", b"\xff\xfe\x00", b"null", b'{"format": 2}', b"{}"])
def test_damage_is_named_and_hides_no_other_run(store: Store, slurm_plan: Plan, tmp_path: Path, content: bytes) -> None:
    bad = store.add(placed(slurm_plan, "20261201-000000-bbbbbbbbbbbb", tmp_path))
    good = store.add(placed(slurm_plan, "20261201-000001-aaaaaaaaaaaa", tmp_path))
    (bad.folder / "run.json").write_bytes(content)
    with pytest.raises(StoreError, match=r"run\.json is damaged"):
        bad.summary()
    listed = {summary.id: summary.problem for summary in store.summaries()}
    assert listed[good.id] is None
    assert "damaged" in (listed[bad.id] or "")


def test_a_foreign_folder_is_listed_as_a_problem(store: Store) -> None:
    (store.runs / "somebody-elses").mkdir(parents=True)
    assert [bool(s.problem) for s in store.summaries()] == [True]


def test_files_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match=r"file.*(folder|file)"):
        files.make_folder(tmp_path / "file" / "runs")
    with pytest.raises(StoreError, match="is a folder"):
        files.read(tmp_path)


@pytest.mark.parametrize(
    "number,words",
    [(errno.ENOSPC, "disk is full"), (errno.EDQUOT, "quota"), (errno.EACCES, "permission"), (errno.EROFS, "read-only")],
)
def test_refusals_of_the_system_in_plain_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    def refuse(*args: Any, **more: Any) -> None:
        raise OSError(number, os.strerror(number), "x")

    for function in ("replace", "fsync", "open"):
        with monkeypatch.context() as patch:
            patch.setattr(os, function, refuse)
            with pytest.raises(StoreError, match=words):
                files.write(tmp_path / "a.json", {})
    assert list(tmp_path.iterdir()) == []


def test_only_one_creates(tmp_path: Path) -> None:
    assert files.create(tmp_path / "a", {"n": 1})
    assert not files.create(tmp_path / "a", {"n": 2})
    assert files.read(tmp_path / "a") == {"n": 1}
    assert os.listdir(tmp_path) == ["a"]


def test_create_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    assert files.create(tmp_path / "a", {"n": 1})
    assert not files.create(tmp_path / "a", {"n": 2})
    assert files.read(tmp_path / "a") == {"n": 1}


class Crash(BaseException):
    """The process ends here."""


OPERATIONS = ("open", "fsync", "replace", "link", "rename", "unlink", "mkdir")


def test_a_crash_at_any_operation_leaves_a_whole_run_or_none(
    store: Store, slurm_plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashes = 0
    for number in range(200):
        run_id = f"20261201-000000-{number:012x}"
        left = number
        dead = False

        def stumble(real: Any) -> Any:
            def operation(*args: Any, **more: Any) -> Any:
                nonlocal left, dead
                if dead or left == 0:
                    dead = True
                    raise Crash
                left -= 1
                return real(*args, **more)

            return operation

        with monkeypatch.context() as patch:
            for name in OPERATIONS:
                patch.setattr(os, name, stumble(getattr(os, name)))
            try:
                store.add(placed(slurm_plan, run_id, tmp_path))
            except Crash:
                crashes += 1
        problems = [summary for summary in store.summaries() if summary.problem]
        assert problems == []
        if not dead:
            break
    assert crashes > 10
    assert store.open(run_id).plan().place is not None


def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "exit.json")
    with pytest.raises(StoreError, match="not a regular file"):
        files.read(tmp_path / "exit.json")


@pytest.mark.parametrize("text", ["1e999", "-1e400", "NaN", "Infinity"])
def test_no_number_of_ours_is_without_bounds(tmp_path: Path, text: str) -> None:
    (tmp_path / "exit.json").write_text(f'{{"code": {text}}}')
    with pytest.raises(StoreError, match="damaged"):
        files.read(tmp_path / "exit.json")
