"""The first cause under the avalanche, and input of every kind."""

from __future__ import annotations

import gzip
import io
import json
import random
from pathlib import Path

import pytest

from maple_parsl.cli import main
from maple_parsl.diagnosis import LogSource, diagnose
from maple_parsl.diagnosis.signature import load_signatures
from maple_parsl.errors import ConfigurationError


def rank_log(rank: int, second: int, error: str) -> LogSource:
    text = f"2026-01-02 03:04:{second:02},000 INFO start\n"
    text += f'Traceback (most recent call last):\n  File "train.py", line 9, in main\n    step()\n{error}\n'
    return LogSource.of_text(f"rank{rank}.log", text)


def test_order_of_the_ranks_does_not_matter() -> None:
    logs = [rank_log(n, 40, "RuntimeError: Connection closed by peer [10.0.0.2]:4") for n in range(8)]
    logs[5] = rank_log(5, 20, "ValueError: bad label 7")
    logs[6] = rank_log(6, 30, "ValueError: bad label 9")
    for seed in range(10):
        random.Random(seed).shuffle(logs)
        cause = diagnose(logs).causes[0]
        assert (cause.fault_class, cause.rank) == ("program_exception", 5)
        assert "bad label 7" in cause.explanation
        assert cause.evidence.frame == "train.py:9 in main"


def test_one_error_under_many_timeouts() -> None:
    lines = [f"[rank{n}]: RuntimeError: Timed out waiting 1800000ms for recv operation to complete" for n in range(500)]
    lines.insert(499, "[rank77]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB")
    cause = diagnose([LogSource.of_text("log", "\n".join(lines))]).causes[0]
    assert (cause.fault_class, cause.rank, cause.evidence.line) == ("out_of_memory", 77, 500)


def test_large_log_gives_the_same_as_a_small_one() -> None:
    filler = b"".join(b"2026-01-02 03:04:05,000 INFO step %d loss 0.5\n" % n for n in range(100_000))
    error = (
        b"[rank3]: Traceback (most recent call last):\n[rank3]:   File \"a.py\", line 2, in f\n[rank3]: KeyError: 'q'\n"
    )
    noise = b"srun: error: gpu01: task 3: Exited with exit code 1\n" * 50_000
    result = diagnose([LogSource.of_text("log", filler + error + filler + noise)])
    assert result.causes[0].fault_class == "program_exception"
    assert result.causes[0].evidence.line == 100_003
    assert result.causes[0].rank == 3


def test_the_last_lines_of_a_log_full_of_harmless_tracebacks_count() -> None:
    harmless = 'Traceback (most recent call last):\n  File "w.py", line 1, in w\n    x\nUserWarning: slow\n' * 40_000
    last = (
        'Traceback (most recent call last):\n  File "a.py", line 2, in f\n    y\nIndexError: list index out of range\n'
    )
    cause = diagnose([LogSource.of_text("log", harmless + last)]).causes[0]
    assert "IndexError" in cause.explanation


def test_first_of_chained_exceptions() -> None:
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    x\nLookupError: no shard 9\n\n'
        "During handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "a.py", line 3, in g\n    y\nRuntimeError: loader failed\n'
    )
    assert "no shard 9" in diagnose([LogSource.of_text("log", text)]).causes[0].explanation


def test_program_text_in_a_traceback_is_no_message() -> None:
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n'
        '    raise RuntimeError("CUDA out of memory")\n'
        "RuntimeError: something else\n"
    )
    assert diagnose([LogSource.of_text("log", text)]).causes[0].fault_class == "program_exception"


@pytest.mark.parametrize(
    "accounting, name",
    [
        ("JobID|State|ExitCode\n7|TIMEOUT|0:0\n7.0|CANCELLED|0:15\n", "walltime"),
        ("JobID State ExitCode\n------ ------ -----\n7  OUT_OF_MEMORY  0:125\n", "out_of_memory"),
        ("JobID|State|ExitCode\n7|NODE_FAIL|1:0\n", "node_failure"),
        ("JobID|State|ExitCode\n7|PREEMPTED|0:0\n", "preemption"),
        ("JobID|JobName|State|ExitCode\n7|a|CANCELLED by 1000|0:0\n", "cancelled"),
        ('"Exit_status": -29,\n"comment": "Job run at Tue and exceeded resource walltime"\n', "walltime"),
        ('"Exit_status": 271,\n"comment": "Job run at Tue and terminated by u1@head"\n', "cancelled"),
        ("    Exit_status = 271\n", "cancelled"),
        ('"comment": "Can Never Run: Insufficient amount of resource: ngpus (R: 99 A: 12 T: 12)"\n', "submission"),
    ],
)
def test_accounting_alone(accounting: str, name: str) -> None:
    assert diagnose([], accounting=accounting).causes[0].fault_class == name


def test_nothing_recognised_is_said() -> None:
    result = diagnose([LogSource.of_text("log", "hello\nit went wrong\nthis cannot be\nbye\n")])
    assert not result.causes
    assert [line.text for line in result.suspicious][-1] == "bye"


def test_gzip_cut_off_and_progress_bars(tmp_path: Path) -> None:
    text = b"\r 1%|#\r 2%|##\r\x1b[31mRuntimeError: CUDA error: invalid device ordinal\x1b[0m\n" + random.Random(
        1
    ).randbytes(5000)
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(text)[:-20])
    cause = diagnose([LogSource("log.gz", path=path)]).causes[0]
    assert (cause.fault_class, cause.evidence.line) == ("device", 1)
    assert "\x1b" not in cause.evidence.text


def test_one_endless_line() -> None:
    data = b"x" * 6_000_000 + b" CUDA out of memory " + b"y" * 6_000_000
    cause = diagnose([LogSource("s", stream=io.BytesIO(data))]).causes[0]
    assert cause.fault_class == "out_of_memory"
    assert len(cause.evidence.text) <= 500


def test_edit_of_the_script() -> None:
    log = "[c10d] The client socket has timed out after 12000ms while trying to connect to (localhost, 29511)."
    script = "#!/bin/bash\n#SBATCH --nodes=2\nexport MASTER_ADDR=localhost\nsrun python a.py\n"
    edit = diagnose([LogSource.of_text("log", log)], script=script).causes[0].edits[0]
    assert (edit.line, edit.old) == (3, "export MASTER_ADDR=localhost")
    assert edit.new == 'export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)'


def test_users_file_adds_and_replaces(tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text(
        '[[failure]]\nid = "licence"\nclass = "environment"\nwhere = "machine"\nweight = 60\n'
        'any = [\'FLEXnet error (?P<code>-[0-9]+)\']\ncause = "No licence ({code})."\ndo = ["Wait."]\n'
        'sure = 0.9\nsource = "us"\n'
    )
    signatures = load_signatures({"MAPLE_FAILURES": str(own)})
    cause = diagnose([LogSource.of_text("log", "FLEXnet error -5\n")], signatures=signatures).causes[0]
    assert (cause.signature, cause.explanation) == ("licence", "No licence (-5).")
    own.write_text("[[failure]]\nid = 3\n")
    with pytest.raises(ConfigurationError, match=r"mine\.toml"):
        load_signatures({"MAPLE_FAILURES": f"{tmp_path}/./mine.toml"})


def test_exit_record_names_the_rank() -> None:
    record = {"first_failure": {"rank": 6, "host": "nid2", "code": 1}}
    cause = diagnose(
        [LogSource.of_text("log", "OSError: [Errno 28] No space left on device")], exit_record=record
    ).causes[0]
    assert (cause.rank, cause.host) == (6, "nid2")


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "job.err"
    log.write_bytes(b"[rank1]: \x1b]0;title\x07ModuleNotFoundError: No module named 'torch'\n")
    assert main(["diagnose", str(log)]) == 0
    shown = capsys.readouterr().out
    assert "environment" in shown
    assert "\x1b" not in shown
    assert main(["diagnose", str(log), "--json"]) == 0
    cause = json.loads(capsys.readouterr().out)["causes"][0]
    assert (cause["class"], cause["where"], cause["rank"], cause["evidence"]["line"]) == ("environment", "script", 1, 1)
    log.write_text("all is well\n")
    assert main(["diagnose", str(log)]) == 1
    assert main(["diagnose", str(tmp_path / "none")]) == 2
    assert main(["diagnose", str(log), "--script", str(tmp_path / "none.sh")]) == 2


@pytest.mark.parametrize("filler", [0, 3 << 20])
def test_characters_cut_in_the_middle(filler: int) -> None:
    """A character of several bytes that a block or the end of the log cuts hides nothing, and shows no raw byte."""
    steps = ("étape 1 perte 0.5 ✓\n" * (filler // 24 + 1)).encode()
    data = steps[1:] + "✗ rank 3: OSError: [Errno 28] No space left on device: '/scratch/é".encode()[:-1]
    cause = diagnose([LogSource.of_text("log", data)]).causes[0]
    assert cause.fault_class == "disk_full"
    assert cause.evidence.line == steps.count(b"\n") + 1
    assert cause.evidence.text.endswith("\ufffd")
    cause.evidence.text.encode("utf-8")
