"""The program that runs at a site: self-contained, for older Pythons, confined to its run directories."""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from maple_parsl import remote

RUN = "20261201-103000-7f3a9c12d4e5"


def load() -> Any:
    space: dict[str, Any] = {}
    exec(compile(remote.source(), "site", "exec"), space)
    return space[remote.ENTRY]


entry = load()


def ask(op: str, **asked: Any) -> Any:
    answer = json.loads(entry(json.dumps({"op": op, **asked})))
    assert answer["ok"], answer
    return answer["value"]


def refusal(op: str, **asked: Any) -> str:
    answer = json.loads(entry(json.dumps({"op": op, **asked})))
    assert not answer["ok"], answer
    return str(answer["why"])


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(ask("where", root=str(tmp_path / "runs"))["root"])


def test_it_compiles_for_python_3_9_and_defines_each_name_once() -> None:
    tree = ast.parse(remote.source(), feature_version=(3, 9))
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert len(names) == len(set(names))
    imported = {
        (node.module or "") if isinstance(node, ast.ImportFrom) else alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    beyond = {name.partition(".")[0] for name in imported} - set(sys.stdlib_module_names)
    assert beyond == {"parsl"}


def test_it_runs_without_anything_installed(tmp_path: Path) -> None:
    program = f"{remote.source()}\nimport json,sys\nprint(entry(sys.argv[1]))"
    text = json.dumps({"op": "where", "root": str(tmp_path)})
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program, text], capture_output=True, text=True, timeout=60)
    said = json.loads(done.stdout)
    assert said["ok"]
    assert said["value"]["root"] == str(tmp_path)
    assert said["value"]["parsl"] == ""


def staged(*files: tuple[str, bytes, int]) -> tuple[list[list[Any]], dict[str, str]]:
    rows = [[name, hashlib.sha256(data).hexdigest(), mode] for name, data, mode in files]
    kept = {row[1]: base64.b64encode(data).decode() for row, (_, data, _) in zip(rows, files, strict=True)}
    return rows, kept


def submit(root: str, script: bytes, number: int = 1) -> Any:
    rows, kept = staged(("script.sh", script, 0o755), ("work/train.py", b"x = 1\n", 0o644))
    spec = {"kind": "none", "job_name": f"maple-{RUN}", "nodes": 1, "tasks_per_node": 1, "walltime": "00:05:00"}
    more = {"files": rows, "contents": kept, "script": "script.sh", "spec": spec}
    return ask("submit", root=root, run=RUN, number=number, **more)


def test_a_submission_happens_once_however_often_it_is_asked_for(root: str) -> None:
    first = submit(root, b"echo one\n")
    assert first["state"] == "submitted"
    assert [submit(root, b"echo one\n")["job_id"] for _ in range(3)] == [first["job_id"]] * 3
    limit = time.monotonic() + 30
    while ask("status", runs=[], local=[first["job_id"]])["local"][first["job_id"]]:
        assert time.monotonic() < limit
        time.sleep(0.1)
    assert Path(root, RUN, "log.txt").read_text() == "one\n"
    assert Path(root, RUN, "work/train.py").read_text() == "x = 1\n"
    assert ask("lookup", root=root, run=RUN, number=1)["state"] == "submitted"


def test_a_submission_that_was_given_up_does_nothing_when_it_arrives(root: str) -> None:
    assert ask("withdraw", root=root, run=RUN, number=1)["withdrawn"]
    assert submit(root, b"echo ran\n")["state"] == "withdrawn"
    assert not Path(root, RUN, "log.txt").exists()
    assert submit(root, b"exit 0\n", number=2)["state"] == "submitted"


def test_a_submission_that_arrived_cannot_be_given_up(root: str) -> None:
    assert submit(root, b"exit 0\n")["state"] == "submitted"
    assert not ask("withdraw", root=root, run=RUN, number=1)["withdrawn"]


def test_a_submission_cut_short_is_in_doubt_and_not_repeated(root: str) -> None:
    folder = Path(root, RUN)
    folder.mkdir()
    (folder / "intent.1.json").write_text('{"job_name": "maple-x", "at": 1}')
    assert submit(root, b"exit 0\n")["state"] == "doubt"


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "work/../../../etc/shadow"])
def test_paths_stay_inside_the_run_directory(root: str, name: str) -> None:
    Path(root, RUN).mkdir()
    assert "not inside" in refusal("read", root=root, run=RUN, name=name)
    rows, kept = staged((name, b"bad", 0o644))
    spec = {"kind": "none", "job_name": "maple-x", "nodes": 1, "tasks_per_node": 1, "walltime": "1"}
    said = refusal("submit", root=root, run=RUN, number=1, files=rows, contents=kept, script="x", spec=spec)
    assert "not inside" in said


def test_links_do_not_lead_out_of_the_run_directory(root: str) -> None:
    folder = Path(root, RUN)
    folder.mkdir()
    (folder / "log.txt").symlink_to("/etc/passwd")
    assert "not inside" in refusal("read", root=root, run=RUN)


@pytest.mark.parametrize("run", ["..", "a/b", "", "x" * 80, "UPPER-CASE"])
def test_only_ids_of_runs_name_a_run(root: str, run: str) -> None:
    assert "not the id" in refusal("read", root=root, run=run)


def test_only_folders_made_for_runs_hold_runs(tmp_path: Path) -> None:
    assert "no folder for run" in refusal("read", root=str(tmp_path), run=RUN)


def test_the_log_is_read_by_offset_and_bounded(root: str) -> None:
    folder = Path(root, RUN)
    folder.mkdir()
    (folder / "log.txt").write_bytes(bytes(range(256)) * 64)
    part = ask("read", root=root, run=RUN, offset=10, limit=5)
    assert base64.b64decode(part["data"]) == bytes([10, 11, 12, 13, 14])
    assert part["size"] == 16384
    tail = ask("read", root=root, run=RUN, offset=-3)
    assert (tail["start"], base64.b64decode(tail["data"])) == (16381, bytes([253, 254, 255]))
    assert ask("read", root=root, run=RUN, offset=99999)["data"] == ""


def test_a_pipe_in_place_of_the_log_does_not_hang(root: str) -> None:
    folder = Path(root, RUN)
    folder.mkdir()
    os.mkfifo(folder / "log.txt")
    assert "not a regular file" in refusal("read", root=root, run=RUN) or "Invalid" in refusal(
        "read", root=root, run=RUN
    )


def test_status_of_many_runs_brings_only_what_changed(root: str) -> None:
    runs = [f"20261201-103000-{number:012x}" for number in range(200)]
    for run in runs:
        (Path(root, run)).mkdir()
        (Path(root, run, "started.json")).write_text('{"job_id": "1", "attempt": 1, "host": "n", "started": 1}')
        os.symlink("17", Path(root, run, "claim"))
    said = ask("status", runs=[{"root": root, "run": run} for run in runs])["runs"]
    assert {one["claim"] for one in said.values()} == {"17"}
    have = {run: {name: value[0] for name, value in one["files"].items()} for run, one in said.items()}
    again = ask("status", runs=[{"root": root, "run": run, "have": have[run]} for run in runs])["runs"]
    assert all(not one["files"] for one in again.values())
    assert not ask("status", runs=[{"root": root, "run": RUN}])["runs"][RUN]["present"]


def test_only_the_schedulers_own_commands_are_run() -> None:
    for words in (["sh", "-c", "id"], ["/bin/squeue"], [], ["rm", "-rf", "/"]):
        assert "not a command" in refusal("command", argv=words)


def test_damaged_files_and_questions_are_refused(root: str) -> None:
    assert "damaged" in refusal("stage", root=root, contents={"0" * 64: base64.b64encode(b"x").decode()})
    assert "SHA-256" in refusal("stage", root=root, contents={"../../x": ""})
    for text in ("", "[]", "{}", '{"op": "none"}', '{"op": "status"}', "\x00"):
        assert not json.loads(entry(text))["ok"]


@pytest.mark.parametrize(
    ("text", "why"), [("$NOT_SET/x", "NOT_SET"), ("relative", "absolute"), ("/tmp/a b", "charact")]
)
def test_the_folder_for_runs_is_a_plain_path(text: str, why: str) -> None:
    assert why in refusal("where", root=text)
