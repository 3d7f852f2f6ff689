from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from maple_parsl import cli
from maple_parsl.cli.output import clean, console, emit_json
from maple_parsl.errors import LimitError

ROOT = Path(__file__).parents[2]


def maple(*words: str, tail: str = "pass", **environ: str) -> subprocess.CompletedProcess[str]:
    code = f"import sys; from maple_parsl.cli import main; code = main(); {tail}; sys.exit(code)"
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environ},
        check=False,
    )


def test_help_imports_no_verb_and_no_rich() -> None:
    heavy = "print([m for m in ('rich', 'pydantic', 'parsl', 'maple_parsl.cli.sites') if m in sys.modules])"
    done = maple("--help", tail=heavy)
    assert done.returncode == 0
    assert "sites" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"
    assert maple().stdout == maple("--help").stdout


@pytest.mark.parametrize(
    "words,code,text",
    [
        (["siets"], 2, "unknown command 'siets'; did you mean sites"),
        (["sites", "shwo"], 2, "shwo"),
        (["sites", "--nonsense"], 2, "--nonsense"),
        (["sites", "show"], 2, "NAME"),
        (["sites", "check", "--max-age-days", "x"], 2, "max-age-days"),
    ],
)
def test_misuse_is_explained_without_a_traceback(words: list[str], code: int, text: str) -> None:
    done = maple(*words)
    assert done.returncode == code
    assert text.lower() in done.stderr.lower()
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "error,code,text",
    [
        (LimitError("too much"), 8, "error: too much"),
        (LimitError("a\x1b[31mb\x07"), 8, "error: ab"),
        (KeyboardInterrupt(), 130, ""),
        (OSError(errno.ENOSPC, "x", "/data/f"), 1, "/data/f: the disk is full"),
        (PermissionError(errno.EACCES, "x", "/data/f"), 1, "/data/f: permission denied"),
    ],
)
def test_errors_become_messages_and_exit_codes(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
    text: str,
) -> None:
    def command() -> None:
        raise error

    module = type(sys)("made_up_verb")
    module.command = command  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "made_up_verb", module)
    monkeypatch.setitem(cli.VERBS, "try", ("made_up_verb", "Try."))
    assert cli.main(["try"]) == code
    assert text in capsys.readouterr().err


def test_a_verb_may_be_a_function_that_returns_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    module = type(sys)("made_up_verb")

    def command(count: int) -> int:
        return count

    command.__annotations__ = {"count": int, "return": int}
    module.command = command  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "made_up_verb", module)
    monkeypatch.setitem(cli.VERBS, "try", ("made_up_verb", "Try."))
    assert cli.main(["try", "7"]) == 7


def test_a_closed_pipe_is_quiet(tmp_path: Path) -> None:
    code = "import sys; from maple_parsl.cli import main; sys.exit(main(['sites', 'show', 'tern', '--json']))"
    reader, writer = os.pipe()
    os.close(reader)
    environ = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "MAPLE_SITE_PATH": str(Path(__file__).parent / "data"),
        "MAPLE_CONFIG_HOME": str(tmp_path),
    }
    done = subprocess.run([sys.executable, "-c", code], stdout=writer, stderr=subprocess.PIPE, env=environ, check=False)
    os.close(writer)
    assert done.stderr == b""
    assert done.returncode == 1


@pytest.mark.parametrize(
    "dirty,safe",
    [
        ("a\x1b[2Jb", "ab"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\rb\x00\x9bc", "abc"),
        ("user\u202egnp", "usergnp"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("\x1b", ""),
        ("é ü 漢 ×", "é ü 漢 ×"),
    ],
)
def test_nothing_drives_the_terminal(dirty: str, safe: str) -> None:
    assert clean(dirty) == safe


def test_json_is_one_object_of_plain_values(capsys: pytest.CaptureFixture[str]) -> None:
    emit_json({"path": Path("/a"), "set": {2, 1}, "none": None})
    assert json.loads(capsys.readouterr().out) == {"path": "/a", "set": [1, 2], "none": None}


def test_no_colour_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    console().print("[bold]x[/bold]", style="red")
    assert capsys.readouterr().out == "[bold]x[/bold]\n"


PLAN = "plan --script t.py --site perlmutter --nodes 1 --walltime 1h --account m1 --queue regular".split()


@pytest.mark.parametrize("closing", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error(closing: str) -> None:
    code = "import sys; from maple_parsl.cli import main; sys.exit(main())"
    line = f'exec "$0" -c \'{code}\' "$@" {closing}'
    done = subprocess.run(
        ["bash", "-c", line, sys.executable, *PLAN],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)


def test_a_terminal_without_the_characters() -> None:
    shown = maple(*PLAN, "--env", "X=é😀", PYTHONIOENCODING="ascii")
    assert (shown.returncode, shown.stderr) == (0, "")
    script = maple(*PLAN, "--env", "X=é😀", "--script-only", PYTHONIOENCODING="ascii")
    assert "export X='é😀'\n" in script.stdout


@pytest.mark.parametrize(
    "name,value",
    [("MAPLE_TEMPLATE_PATH", "/no/such"), ("MAPLE_TEMPLATE_PATH", "~nosuch/x"), ("MAPLE_CONFIG_HOME", "~nosuch/x")],
)
def test_a_setting_that_names_no_folder(name: str, value: str) -> None:
    done = maple(*PLAN, **{name: value})
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("error: ")


def test_a_site_path_that_names_nobodys_home() -> None:
    assert maple("plan", "--script", "t.py", "--site", "~nosuch/x").returncode == 3
    assert maple("sites", MAPLE_SITE_PATH="~nosuch/x").returncode == 0
    assert maple(*PLAN, COLUMNS="²").returncode == 0


@pytest.mark.parametrize("line", ["&& x", "cat <<X", "if true", "(", "a;;"])
def test_a_setup_line_that_is_not_whole(line: str) -> None:
    done = maple(*PLAN, "--setup", line)
    assert done.returncode == 2
    assert "not a whole line of shell" in done.stderr
