"""Reading what schedulers say: recorded outputs, and anything else."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maple_parsl.errors import SchedulerError, SubmissionError
from maple_parsl.schedulers import JobState, commands, pbs_text, reasons, slurm_text
from maple_parsl.schedulers.pbs import PBS
from maple_parsl.schedulers.slurm import Slurm
from maple_parsl.schedulers.submission import judged

DATA = Path(__file__).parents[1] / "data" / "pbs"
MARK = slurm_text.MARK


def recorded(name: str) -> str:
    """The JSON of a recording, without its first and last line."""
    return "\n".join((DATA / name).read_text().splitlines()[1:-1])


@pytest.mark.parametrize(
    ("file", "state", "code", "signal", "words"),
    [
        ("finished_ok_json.txt", JobState.done, 0, None, None),
        ("finished_five_json.txt", JobState.failed, 5, None, "exit code that is not zero"),
        ("finished_wall_json.txt", JobState.timeout, None, None, "It reached its walltime"),
        ("finished_deleted_json.txt", JobState.cancelled, None, 15, "It was deleted by u1"),
        ("qstat_running_json.txt", JobState.running, None, None, None),
        ("qstat_held_json.txt", JobState.pending, None, None, "It is held"),
        ("qstat_queued_never_json.txt", JobState.pending, None, None, "asks for 99 ngpus, and there are 12"),
    ],
)
@pytest.mark.parametrize("broken", [False, True])
def test_recorded_jobs(
    file: str, state: JobState, code: int | None, signal: int | None, words: str | None, broken: bool
) -> None:
    text = recorded(file)
    if broken:  # as a job's environment with a quote makes it
        text = text.replace('"PBS_O_LANG":	"C.UTF-8"', '"PBS_O_LANG":	"say "hello\\ there"')
        with pytest.raises(ValueError):
            json.loads(text)
    (info,) = pbs_text.jobs(text).values()
    assert (info.state, info.exit_code, info.exit_signal) == (state, code, signal)
    assert (words or "") in (info.explanation or "")
    assert info.never == (file == "qstat_queued_never_json.txt")
    assert info.name == {"finished_deleted_json.txt": "running"}.get(file, info.name)


def test_no_job_and_no_answer() -> None:
    assert pbs_text.jobs("") == {}
    assert pbs_text.jobs("\n".join((DATA / "err_unknown_job.txt").read_text().splitlines()[2:-1])) == {}
    with pytest.raises(SchedulerError, match="cannot be read: '<html>'"):
        pbs_text.jobs("<html>\nbusy")
    with pytest.raises(SchedulerError, match="cannot be read"):
        pbs_text.jobs("[1]")


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for reader in (pbs_text.jobs, slurm_text.squeue, slurm_text.sacct):
        with contextlib.suppress(SchedulerError):
            reader(text)


values = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=20), st.lists(st.integers(), max_size=2))
keys = st.sampled_from(["Job_Name", "job_state", "comment", "Exit_status", "run_count", "estimated", "substate"])


@given(st.dictionaries(keys, values))
def test_any_attributes_of_a_pbs_job_are_read(fields: dict[str, Any]) -> None:
    (info,) = pbs_text.jobs(json.dumps({"pbs_version": "23", "Jobs": {"1.s": fields}})).values()
    assert info.job_id == "1.s"


names = st.text(st.characters(exclude_characters=f"{MARK}\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029", codec="utf-8"))


@given(names, st.sampled_from(sorted(slurm_text.STATES)), st.integers(0, 255), st.integers(0, 15))
def test_a_row_of_squeue_is_read_whatever_the_name(name: str, state: str, code: int, signal: int) -> None:
    row = MARK.join(["12", "12", state, "None", str(code << 8 | signal), "N/A", "n1", "0", name])
    (info,) = slurm_text.squeue(row + "\n")
    assert (info.name or "") == name.strip()
    assert info.state is slurm_text.STATES[state]
    if info.state.ended:
        assert (info.exit_code, info.exit_signal) == (code, signal or None)


def test_rows_of_sacct() -> None:
    rows = [
        ["12", "12", "CANCELLED by 0", "0:15", "n[1-2]", "maple-a"],
        ["13_4", "17", "OUT_OF_MEMORY", "0:125", "n1", "x"],
        ["14+0", "14", "NODE_FAIL", "1:0", "None assigned", "y|z"],
        ["15", "15", "SOMETHING", "0:0", "", ""],
    ]
    infos = slurm_text.sacct("\n".join(MARK.join(row) for row in rows))
    assert [info.state for info in infos] == [
        *(JobState.cancelled, JobState.out_of_memory, JobState.node_failure, JobState.unknown)
    ]
    assert infos[0].explanation == "It was cancelled by user 0."
    assert infos[2].nodes is None


@pytest.mark.parametrize(
    ("row", "asked", "yes"),
    [
        ("12", "12", True),
        ("12_3", "12", True),
        ("12+1", "12", True),
        ("12_3", "12_3", True),
        ("12_[1-3,7%2]", "12_2", True),
        ("12_[1-3,7%2]", "12_7", True),
        ("12_[1-3,7%2]", "12_4", False),
        ("12_3", "12_4", False),
        ("123", "12", False),
    ],
)
def test_which_rows_are_a_job(row: str, asked: str, yes: bool) -> None:
    assert slurm_text.belongs(row, asked) is yes


@pytest.mark.parametrize(
    ("code", "never", "words"),
    [
        ("Resources", False, "next in line"),
        ("Priority", False, "in front of it"),
        ("QOSMaxJobsPerUserLimit", False, "jobs"),
        ("QOSMaxGRESPerUser", False, "GPUs"),
        ("AssocGrpCPUMinutesLimit", False, "balance"),
        ("AssocMaxWallDurationPerJobLimit", True, "walltime"),
        ("QOSMaxNodePerJobLimit", True, "nodes"),
        ("QOSMinGRES", True, "less GPUs"),
        ("PartitionTimeLimit", True, "longer than this partition"),
        ("PartitionNodeLimit", True, "nodes"),
        ("ReqNodeNotAvail", False, "maintenance"),
        ("ReqNodeNotAvail, UnavailableNodes:n[1-2]", False, "maintenance"),
        ("DependencyNeverSatisfied", True, "cancel it"),
        ("BeginTime", False, "begin time"),
    ],
)
def test_reasons_of_slurm(code: str, never: bool, words: str) -> None:
    reason = reasons.slurm(code)
    assert reason is not None
    assert (reason.never, words in reason.text) == (never, True), reason


@pytest.mark.parametrize(
    ("comment", "never"),
    [
        ("Can Never Run: Insufficient amount of resource: ngpus (R: 99 A: 12 T: 12)", True),
        ("Can Never Run: Not enough total nodes available", True),
        ("Not Running: Insufficient amount of resource: ncpus (R: 4 A: 0 T: 64)", False),
        ("Not Running: Queue not started.", False),
        ("Not Running: Job would conflict with reservation or top job", False),
        ("Not Running: User has reached queue debug running job limit.", False),
    ],
)
def test_comments_of_pbs(comment: str, never: bool) -> None:
    reason = reasons.pbs(comment)
    assert reason is not None
    assert reason.never is never


def test_an_unknown_reason_is_left_unexplained() -> None:
    assert reasons.slurm("SomethingNew") is reasons.slurm("") is None
    assert reasons.pbs("hello") is None


def answering(monkeypatch: pytest.MonkeyPatch, *answers: tuple[int, str, str]) -> list[tuple[str, ...]]:
    seen: list[tuple[str, ...]] = []

    def run(argv: Any, **options: Any) -> commands.Answer:
        seen.append(tuple(argv))
        return commands.Answer(tuple(argv), *answers[len(seen) - 1])

    monkeypatch.setattr(commands, "run", run)
    return seen


def test_partial_answers_of_qstat(monkeypatch: pytest.MonkeyPatch) -> None:
    words = "qstat: Unknown Job Id 99999.pbsserver\n"
    answering(monkeypatch, (153, recorded("finished_ok_json.txt"), words))
    infos = PBS().query(["1.pbsserver", "99999.pbsserver"])
    assert [info.state for info in infos.values()] == [JobState.done, JobState.unknown]


def test_a_server_names_itself_in_short_or_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, *[(0, recorded("finished_ok_json.txt"), "")] * 3)
    for job_id in ("1", "1.pbsserver", "1.pbsserver.site.org"):
        assert PBS().query([job_id])[job_id].state is JobState.done


def test_federated_clusters_are_named_in_every_command(monkeypatch: pytest.MonkeyPatch) -> None:
    row = MARK.join(["7", "7", "RUNNING", "None", "0", "N/A", "n1", "0", "x"])
    seen = answering(monkeypatch, (0, f"CLUSTER: one\n{row}\n", ""), (0, "", ""))
    scheduler = Slurm("one")
    assert scheduler.query(["7"])["7"].state is JobState.running
    scheduler.cancel("7")
    assert all("--clusters=one" in argv for argv in seen)


def test_accounting_that_is_away_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    away = (1, "", "sacct: error: Problem talking to the database: Connection refused")
    off = (1, "", "Slurm accounting storage is disabled")
    seen = answering(monkeypatch, (0, "", ""), away, (0, "", ""), off, (0, "", ""))
    scheduler = Slurm()
    for _ in range(3):
        assert scheduler.query(["7"])["7"].state is JobState.unknown
    assert [argv[0] for argv in seen] == ["squeue", "sacct", "squeue", "sacct", "squeue"]


@pytest.mark.parametrize("job_id", ["", "x", "1;2", "--all", "1 2"])
def test_an_id_that_is_none_is_not_sent(monkeypatch: pytest.MonkeyPatch, job_id: str) -> None:
    seen = answering(monkeypatch)
    for scheduler in (Slurm(), PBS()):
        assert scheduler.query([job_id])[job_id].state is JobState.unknown
        with pytest.raises(SchedulerError, match="is not the id of"):
            scheduler.cancel(job_id)
    assert seen == []


@pytest.mark.parametrize("wrong", ["x", "1;2", "\ufffd\ufffd"])
def test_one_wrong_id_hides_no_other(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    seen = answering(monkeypatch, (0, "", ""), (0, "", ""))
    assert set(Slurm().query([wrong, "7"])) == {wrong, "7"}
    assert all(wrong not in word for argv in seen for word in argv if word.startswith("--jobs="))


@pytest.mark.parametrize(
    "scheduler,said,code",
    [
        ("slurm", "Submitted batch job 43", 1),
        ("slurm", "", 1),
        ("slurm", "", -11),
        ("pbs", "43.server\n", 1),
        ("slurm", "Socket timed out on send/recv operation", 1),
    ],
)
def test_a_submission_without_a_refusal_is_in_doubt(scheduler: str, said: str, code: int) -> None:
    assert isinstance(judged(scheduler, said, code), SchedulerError)
    assert isinstance(judged(scheduler, "error: Invalid account", code), SubmissionError)
