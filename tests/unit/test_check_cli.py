"""maple check as a command: forms, exit codes, fixing, configuration, baselines, hooks and the action."""

from __future__ import annotations

import io
import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from maple_parsl.cli import main
from maple_parsl.rules import check, rules
from tests.cases import ROOT

RULE = rules()["framework-launcher-per-task"]
ONLY = ("--rule", RULE.id)
FOUND = next(found for found in check(RULE.bad) if found.rule == RULE.id)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MAPLE_SITE", raising=False)
    (tmp_path / "bad.sh").write_text(RULE.bad)
    (tmp_path / "good.sh").write_text(RULE.good)
    return tmp_path


def test_text_shows_the_line_and_a_caret(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "bad.sh", "good.sh", *ONLY]) == 1
    out = capsys.readouterr().out
    frame = out.split("\n")
    at = next(n for n, row in enumerate(frame) if row.startswith(" 6 | "))
    assert frame[at + 1].index("^") == len(" 6 | ") + (FOUND.column or 0) - 1
    assert f"bad.sh:6:{FOUND.column}: error" in out
    assert out.rstrip().endswith("2 files checked: 1 error")


def test_text_fits_a_narrow_terminal_and_drives_none(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    (folder / "evil.sh").write_bytes(RULE.bad.replace("srun", "\x1b[31m\tsrun").encode() + b"cat <<\x1b]0;x\x07E\n")
    main(["check", "evil.sh", "bad.sh"])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\x07" not in out
    frames = [row for row in out.split("\n") if re.match(r" +\d* \|", row)]
    assert frames
    assert max(map(len, frames)) <= 40


def test_json_is_one_object(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "bad.sh", "--format", "json", *ONLY]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["site"] is None
    assert told["summary"]["errors"] == 1
    (found,) = told["findings"]
    assert set(found) == {
        "rule", "class", "severity", "file", "line", "column", "message", "evidence", "fix", "edits"
    }  # fmt: skip
    assert (found["file"], found["line"], found["class"]) == ("bad.sh", 6, "LAUNCHER_TASK_MISMATCH")


def test_sarif(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a b.sh").write_text(RULE.bad)
    assert main(["check", "a b.sh", "--format", "sarif", *ONLY]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["version"] == "2.1.0"
    (run,) = told["runs"]
    (result,) = run["results"]
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert rule["id"] == result["ruleId"] == RULE.id
    assert rule["helpUri"].startswith("https://")
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "a%20b.sh"
    assert place["region"]["startLine"] == 6


def test_github_commands_are_escaped(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "x,y.sh").write_text(RULE.bad)
    assert main(["check", "x,y.sh", "--format", "github", *ONLY]) == 1
    (row,) = capsys.readouterr().out.strip().split("\n")
    assert row.startswith(f"::error file=x%2Cy.sh,line=6,col={FOUND.column},title={RULE.id}::")


@pytest.mark.parametrize("name", ["missing.sh", ".", "/dev/null", "a\0b"])
def test_bad_input_is_2(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", name]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_misuse_is_2(folder: Path) -> None:
    assert main(["check"]) == 2
    assert main(["check", "good.sh", "--rule", "frobnicate"]) == 2
    assert main(["check", "good.sh", "--site", "nowhere"]) == 2
    assert main(["check", "--explain", "framework-launcher"]) == 2


def test_standard_input(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(RULE.bad.encode())))
    assert main(["check", "-"]) == 1
    assert "<stdin>:6:" in capsys.readouterr().out


@pytest.mark.parametrize(
    "data", [b"", b"\x7fELF" + bytes(4000), b"#!/bin/bash\nsrun 'x\n", b"cat <<EOF\n", "srun x".encode("utf-16")]
)
def test_what_is_no_script_is_a_finding(folder: Path, data: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "odd.sh").write_bytes(data)
    for form in ("text", "json", "sarif", "github"):
        assert main(["check", "odd.sh", "--format", form]) == 1
    assert main(["check", "odd.sh", "--fix"]) == 1
    assert (folder / "odd.sh").read_bytes() == data


def test_explain_prints_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--explain", RULE.id]) == 0
    assert capsys.readouterr().out == (ROOT / "docs" / "rules" / f"{RULE.id}.md").read_text()


def test_map(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "good.sh", "--map"]) == 0
    assert "nodes 0-1: 4 each, ranks 0-7" in capsys.readouterr().out


def test_configuration(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "jobs" / "deep").mkdir(parents=True)
    (folder / "jobs" / "deep" / "a.sh").write_text(RULE.bad)
    (folder / ".maple.toml").write_text(f'[check]\nsites = {{"jobs/**/*.sh" = "delta"}}\ndisable = ["{RULE.id}"]\n')
    main(["check", "jobs/deep/a.sh", "--format", "json"])
    told = json.loads(capsys.readouterr().out)
    assert told["site"] == "delta"
    assert RULE.id not in {found["rule"] for found in told["findings"]}


@pytest.mark.parametrize(
    "text,said",
    [
        ("[chek]\n", "did you mean check"),
        ("[check]\ndisabel = []\n", "did you mean disable"),
        ('[check]\ndisable = ["framework-launcher-per-tsk"]\n', "did you mean framework-launcher-per-task"),
        ("[check]\nsites = 3\n", "check.sites"),
        ("[check]\nstrict = 3\n", "check.strict"),
        ("[check\n", "not TOML"),
        ('[check]\nbaseline = "none.json"\n', "no such baseline"),
    ],
)
def test_wrong_configuration_is_named(folder: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / ".maple.toml").write_text(text)
    assert main(["check", "bad.sh"]) == 2
    assert said in capsys.readouterr().err


def test_baseline_survives_moved_lines(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / ".maple.toml").write_text('[check]\nbaseline = "known.json"\n')
    assert main(["check", "bad.sh", "--write-baseline"]) == 0
    assert main(["check", "bad.sh"]) == 0
    moved = RULE.bad.replace("export", "# a line\n\n  export").replace("srun", "  srun")
    (folder / "bad.sh").write_text(moved)
    assert main(["check", "bad.sh"]) == 0
    (folder / "bad.sh").write_text(moved + moved.split("\n")[-2] + "\n")  # the same fault once more is new
    assert main(["check", "bad.sh"]) == 1


def test_live_asks_the_scheduler(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = {
        "sbatch": "echo 'sbatch: error: Invalid account' >&2; exit 1",
        "sacctmgr": "echo 'abc|gpu|normal'",
        "sinfo": "echo 'gpu|up|2-00:00:00|4'",
    }
    commands = folder / "bin"
    commands.mkdir()
    for name, body in answers.items():
        (commands / name).write_text(f"#!/bin/sh\n{body}\n")
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    text = "#!/bin/bash\n#SBATCH -A xyz\n#SBATCH -p gpux\n#SBATCH -N 1\nsrun hostname\n"
    (folder / "live.sh").write_text(text)
    assert main(["check", "live.sh", "--live", "--format", "json"]) == 1
    found = {f["rule"]: f for f in json.loads(capsys.readouterr().out)["findings"]}
    assert found["live-refused"]["class"] == "ACCOUNT_PARTITION_QOS"
    assert found["live-account"]["line"] == 2
    assert found["live-queue"]["line"] == 3
    (commands / "sinfo").unlink()
    (commands / "sacctmgr").write_text("#!/bin/sh\nexit 1\n")
    main(["check", "live.sh", "--live"])
    assert "note: live: sacctmgr" in capsys.readouterr().out


def test_live_reads_pbs_queues(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "qstat").write_text(
        "#!/bin/sh\nprintf 'Queue: debug\\n    resources_max.nodect = 2\\n    resources_max.walltime = 01:00:00\\n"
        "    enabled = True\\n    started = True\\n\\nQueue: prod\\n    enabled = True\\n'\n"
    )
    (folder / "qstat").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    head = "#!/bin/bash\n#PBS -A x\n#PBS -q debug\n#PBS -l select=4:ngpus=4\n#PBS -l walltime=02:00:00\n"
    (folder / "live.sh").write_text(head + "mpiexec hostname\n")
    main(["check", "live.sh", "--live", "--format", "json"])
    found = [f for f in json.loads(capsys.readouterr().out)["findings"] if f["rule"] == "live-queue"]
    assert {f["line"] for f in found} == {4, 5}


def _hooks() -> list[list[str]]:
    text = (ROOT / ".pre-commit-hooks.yaml").read_text()
    return [line.split() for line in re.findall(r"^  entry: (.*)$", text, re.M)]


@pytest.mark.parametrize("entry", _hooks(), ids=" ".join)
def test_hooks_run_on_files(folder: Path, entry: list[str]) -> None:
    assert entry[0] == "maple"
    assert main([*entry[1:], "good.sh"]) == 0
    assert main([*entry[1:], "good.sh", "bad.sh"]) == 1


def _step() -> str:
    """Shell lines of the action's last step."""
    rows = (ROOT / "action.yml").read_text().split("\n")
    at = max(n for n, row in enumerate(rows) if row.strip() == "run: |")
    return "\n".join(row[8:] for row in rows[at + 1 :])


@pytest.mark.parametrize("pattern,code", [("good.sh", 0), ("**/*.sh", 1), ("none*.sh", 2), ("x y.sh\ngood.sh", 0)])
def test_the_action_runs(folder: Path, pattern: str, code: int) -> None:
    (folder / "x y.sh").write_text(RULE.good)
    maple = folder / "bin" / "maple"
    maple.parent.mkdir()
    maple.write_text(f'#!/bin/sh\nexec {sys.executable} -c "import sys; from maple_parsl.cli import main; '
                     'sys.exit(main())" "$@"\n')  # fmt: skip
    maple.chmod(0o755)
    environ = {
        **os.environ, "PATH": f"{maple.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "MAPLE_FILES": pattern,
        "MAPLE_CHECK_SITE": "", "MAPLE_FORMAT": "github", "MAPLE_OUTPUT": "", "MAPLE_STRICT": "false",
    }  # fmt: skip
    options = ["--noprofile", "--norc", "-e", "-o", "pipefail", "-c", _step()]
    done = subprocess.run(["bash", *options], env=environ, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    if code == 1:
        assert "::error file=bad.sh,line=6" in done.stdout


def test_mode_of_a_written_file_stays(folder: Path) -> None:
    from maple_parsl.checking.files import write_file
    from maple_parsl.errors import RequestError

    file = folder / "good.sh"
    file.chmod(0o750)
    (folder / "link.sh").symlink_to("good.sh")
    write_file(folder / "link.sh", RULE.good.encode(), b"new\n")
    assert file.read_bytes() == b"new\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o750
    assert (folder / "link.sh").is_symlink()
    with pytest.raises(RequestError, match="changed while"):
        write_file(file, b"old\n", b"other\n")
    assert file.read_bytes() == b"new\n"
    assert sorted(p.name for p in folder.iterdir()) == ["bad.sh", "good.sh", "link.sh"]
