"""The Parsl objects of a plan, with every command of a scheduler stood in for."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from maple_parsl.errors import RequestError, SchedulerError, SubmissionError
from maple_parsl.plan import Plan, RunPlace
from maple_parsl.schedulers import commands, scheduler_of
from tests import cases
from tests.directives import effective_directives

SITES = [case for case in cases.SITES if case != "local"]


class Recorder:
    """Takes every command; sbatch and qsub answer with a job, and their script is kept."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, ...]] = []
        self.scripts: list[str] = []
        self.answer = (0, "", "")

    def __call__(self, argv: Any, **options: Any) -> commands.Answer:
        self.lines.append(tuple(argv))
        if argv[0] in ("sbatch", "qsub"):
            self.scripts.append(Path(argv[-1]).read_text())
        said = {"sbatch": "Submitted batch job 12 on cluster x\n", "qsub": "12.server\n"}.get(argv[0], "")
        code, out, err = self.answer
        return commands.Answer(tuple(argv), code, out or (said if code == 0 else ""), err)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    made = Recorder()
    monkeypatch.setattr(commands, "run", made)
    # What Parsl's own providers run goes past Maple.
    shell = lambda cmd, walltime=None: tuple(vars_of(made(shlex.split(cmd))))  # noqa: E731
    monkeypatch.setattr("parsl.providers.cluster_provider.execute_wait", shell)
    return made


def vars_of(answer: commands.Answer) -> tuple[int, str, str]:
    return answer.code, answer.out, answer.err


def placed(case: str, folder: Path, **fields: Any) -> Plan:
    made = cases.plan(case, **fields)
    return made.at(RunPlace(run_id="some-run", run_dir=str(folder / "run"), work_dir=str(folder)))


@pytest.mark.parametrize("case", SITES)
def test_what_is_sent_is_the_plans_script(case: str, tmp_path: Path, recorder: Recorder) -> None:
    plan = placed(case, tmp_path)
    job_id = scheduler_of(plan).submit(plan, tmp_path / "script.sh")
    assert job_id == {"slurm": "12", "pbs": "12.server"}[plan.scheduler]
    assert recorder.scripts == [plan.script]
    assert len(recorder.lines) == 1
    assert len(recorder.lines[0]) == 2  # the command and the file: no option that could contradict the script
    assert not Path(recorder.lines[0][1]).exists()  # and nothing is left of it
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("case", SITES)
def test_the_provider_knows_the_plans_figures(case: str, tmp_path: Path, recorder: Recorder) -> None:
    plan = placed(case, tmp_path)
    made = plan.provider()
    assert made.nodes_per_block == 2
    assert made.walltime == "00:30:00"
    if plan.scheduler == "pbs" and plan.shape.cpus_per_task:
        assert made.cpus_per_node == plan.shape.cpus_per_task * plan.shape.tasks_per_node > 1
    if plan.scheduler == "slurm":
        assert made.exclusive == any(d.option == "--exclusive" for d in plan.directives)
    assert plan.launcher()("echo '$X' \"`y`\"", 4, 2) == "echo '$X' \"`y`\""
    assert recorder.lines == []


@pytest.mark.parametrize("case", SITES)
def test_a_stock_block_asks_for_what_the_plan_asks_for(case: str, tmp_path: Path, recorder: Recorder) -> None:
    plan = placed(case, tmp_path)
    stock = plan.config(run_dir=str(tmp_path), address="127.0.0.1").executors[0].provider
    assert type(stock).__module__.startswith("parsl.")
    stock.script_dir = str(tmp_path)
    stock.submit("worker", 1, "block")
    sent = next(line for line in recorder.lines if line[0] in ("sbatch", "qsub"))
    block = effective_directives(recorder.scripts[0], shlex.join(sent[:-1]))
    wanted = effective_directives(plan.script)
    # Parsl's own: how the block is called, where its output goes, which shell reads it, no mail.
    for name in ("--job-name", "--output", "--error", "--open-mode", "-N", "-o", "-e", "-S", "-m"):
        block.pop(name, None)
        wanted.pop(name, None)
    if "--ntasks-per-node" not in wanted and plan.scheduler == "slurm":
        assert block.pop("--ntasks-per-node") == str(plan.shape.tasks_per_node)
    assert block == wanted


@pytest.mark.parametrize("bad", ["a;touch X", "a b", 'a"b', "a'b", "a%b", "$(touch X)", "a\nb", "-a", "", "a`b`"])
@pytest.mark.parametrize("what", ["account", "queue"])
@pytest.mark.parametrize("case", ["polaris", "perlmutter"])
def test_a_name_that_a_shell_would_read_is_refused(case: str, what: str, bad: str, tmp_path: Path) -> None:
    plan = cases.plan(case).model_copy(update={what: bad})
    with pytest.raises(RequestError, match=f"{what} .* is not a name"):
        plan.provider()
    with pytest.raises(RequestError, match=f"{what} .* is not a name"):
        plan.config(run_dir=str(tmp_path))


@pytest.mark.parametrize("name", ["a;touch X", "a b", 'a"b', "a'b", "a%b", "$(touch X)", "a\nb", "-a", "a`b`"])
@pytest.mark.parametrize("case", ["polaris", "perlmutter"])
def test_any_script_folder_will_do(case: str, name: str, tmp_path: Path, recorder: Recorder) -> None:
    folder = tmp_path / name
    folder.mkdir()
    plan = cases.plan(case)
    made = plan.provider(script_dir=str(folder))
    made.submit(":", 1, job_name=plan.job_name)
    assert recorder.scripts == [plan.script]
    assert [Path(made.script_dir).resolve(), len(list(folder.iterdir()))] == [folder, 1]
    made.clean()
    assert list(folder.iterdir()) == []
    link = Path(made.script_dir)
    del made
    assert not link.exists() or link == folder
    with pytest.raises(RequestError, match="there is no folder"):
        plan.provider(script_dir=str(tmp_path / "none"))


def test_a_directive_of_two_lines_is_refused() -> None:
    plan = cases.plan("perlmutter")
    broken = plan.directives[0].model_copy(update={"option": "--comment=x\ntouch X"})
    with pytest.raises(RequestError, match="not one line"):
        plan.model_copy(update={"directives": (broken,)}).provider()


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        ((1, "", "sbatch: error: invalid partition specified: x"), SubmissionError, "state a queue of this site"),
        ((1, "", "sbatch: error: Socket timed out on send/recv operation"), SchedulerError, "may exist"),
        ((1, "", "Unable to contact slurm controller (connect failure)"), SchedulerError, "may exist"),
        ((0, "hello\n", ""), SchedulerError, "look for the job by its name"),
    ],
)
def test_a_refusal_is_told_from_a_doubt(
    answer: tuple[int, str, str], error: type[Exception], words: str, tmp_path: Path, recorder: Recorder
) -> None:
    recorder.answer = answer
    plan = placed("perlmutter", tmp_path)
    with pytest.raises(error, match=words) as caught:
        scheduler_of(plan).submit(plan, tmp_path / "script.sh")
    assert caught.type is error


def test_a_launch_command_has_a_limit_and_no_second_setup(tmp_path: Path) -> None:
    from maple_parsl.provider import launch_command

    plan = cases.plan("polaris")
    text = launch_command(plan, 600)
    assert "exec timeout --signal=TERM --kill-after=30 600 bash -c " in text
    assert "module load" not in text
    assert "mpiexec -n 8 --ppn 4" in text
    with pytest.raises(RequestError):
        launch_command(plan, 0)
