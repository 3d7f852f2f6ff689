"""The mini-apps really train, over gloo, two ranks on this host unless said otherwise."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import EVERY, STEPS, gpt_command
from .harness import SEVERAL, Run, clean_environment, run, torchrun_command

pytestmark = [pytest.mark.torch, pytest.mark.timeout(1100)]

MODELS = ("bert", "vit", "resnet", "unet")
PARADIGMS = ("ddp", "fsdp", "tp", "pp")
FULL = os.environ.get("MAPLE_FULL") == "1"
"""All combinations; without it a fixed sample, as each starts several processes that import torch."""
ZERO = ("zero1", "zero2", "zero3") if FULL else ("zero3",)
OTHERS = PARADIGMS if FULL else ("fsdp", "pp")
RESUMED = (*PARADIGMS, "zero2", "zero3") if FULL else ("fsdp", "pp")


def need_deepspeed() -> None:
    """Skips without DeepSpeed, but not in CI, which must have it."""
    if importlib.util.find_spec("deepspeed") is None and os.environ.get("CI") != "true":
        pytest.skip("DeepSpeed is not installed")


@pytest.mark.parametrize("paradigm", PARADIGMS)
def test_gpt_learns(gpt_run: Callable[[str], Run], paradigm: str) -> None:
    result = gpt_run(paradigm).check_learned(2)
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert lines == [json.loads(line) for line in (result.folder / "metrics.jsonl").read_text().splitlines()]
    assert [event["step"] for event in result.events("step")] == list(range(1, STEPS + 1))
    assert all(event["samples_per_s"] > 0 for event in result.events("step"))


@pytest.mark.parametrize("paradigm", OTHERS)
def test_other_models_learn(train_py: str, tmp_path: Path, paradigm: str) -> None:
    words: list[str] = []
    for model in MODELS:
        words += ["--", *f"--model {model} --paradigm {paradigm} --steps {STEPS}".split()]
        words += ["--schedule", "1f1b"] if paradigm == "pp" else []
    done = run(torchrun_command(2, str(SEVERAL), train_py, str(tmp_path), *words), tmp_path)
    for number, model in enumerate(MODELS):
        result = Run(tmp_path / str(number), done.code, done.stdout, done.stderr).check_learned(2)
        assert result.events("start")[0]["model"] == model
        check_shards(result, paradigm)


def check_shards(result: Run, paradigm: str) -> None:
    """Asserts that ranks hold copies under ddp, and under the others really different parts."""
    files = result.ranks()
    assert len({file["local_sha256"] for file in files}) == (1 if paradigm == "ddp" else 2)
    for file in files:
        assert (file["local_params"] < file["params"]) == (paradigm in ("fsdp", "tp"))


@pytest.mark.parametrize("paradigm", PARADIGMS)
def test_gpt_is_cut(gpt_run: Callable[[str], Run], paradigm: str) -> None:
    check_shards(gpt_run(paradigm), paradigm)


@pytest.mark.parametrize("paradigm", ("fsdp", "tp", "pp"))
def test_the_paradigm_does_not_change_the_losses(gpt_run: Callable[[str], Run], paradigm: str) -> None:
    expected = gpt_run("ddp").losses()
    assert gpt_run(paradigm).losses() == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("paradigm", ZERO)
def test_zero_learns_as_ddp_does(gpt_run: Callable[[str], Run], paradigm: str) -> None:
    need_deepspeed()
    result = gpt_run(paradigm).check_learned(2)
    assert all(json.loads(line) for line in result.stdout.splitlines())
    assert result.losses() == pytest.approx(gpt_run("ddp").losses(), rel=1e-3)
    assert all((file["local_params"] < file["params"]) == (paradigm == "zero3") for file in result.ranks())


@pytest.mark.parametrize("paradigm", RESUMED)
def test_resumed_run_equals_uninterrupted_one(
    gpt_run: Callable[[str], Run], train_py: str, tmp_path: Path, paradigm: str
) -> None:
    if paradigm.startswith("zero"):
        need_deepspeed()
    whole = gpt_run(paradigm)
    folder = tmp_path / "resumed"
    shutil.copytree(whole.folder, folder)
    for step in range(2 * EVERY, STEPS + 1, EVERY):
        shutil.rmtree(folder / "checkpoints" / f"step-{step:08d}")
    # What a run that was killed while it wrote a checkpoint leaves behind is not taken for one.
    (folder / "checkpoints" / ".step-00000025.partial").mkdir()
    (folder / "metrics.jsonl").unlink()
    resumed = run(gpt_command(train_py, paradigm), folder, MAPLE_RESUME="1").check_learned(2)
    assert resumed.events("start")[0]["resumed_from"] == f"step-{EVERY:08d}"
    assert resumed.losses() == {step: loss for step, loss in whole.losses().items() if step > EVERY}
    assert resumed.events("end")[0] == whole.events("end")[0]


def test_3d_learns_as_ddp_does_and_resumes(gpt_run: Callable[[str], Run], train_py: str, tmp_path: Path) -> None:
    command = [*gpt_command(train_py, "3d", 8), "--batch-size", "16"]
    steps = (EVERY, EVERY + 5) if FULL else (EVERY,)
    for number, last in enumerate(steps):
        done = run([*command, "--steps", str(last)], tmp_path, MAPLE_RESUME=str(number))
        assert done.code == 0, done.stderr
        assert "Warning" not in done.stderr
    starts = done.events("start")
    assert [start["step"] for start in starts] == [0, EVERY][: len(steps)]
    assert starts[0]["layout"] == {"dp": 2, "pp": 2, "tp": 2}
    expected = {step: loss for step, loss in gpt_run("ddp").losses().items() if step <= steps[-1]}
    assert done.losses() == pytest.approx(expected, rel=1e-3)
    files = done.ranks()
    assert [(file["replica"], file["scope"]) for file in files] == [
        (replica, f"stage {stage} of 2") for replica in (0, 1) for stage in (0, 1) for _ in (0, 1)
    ]
    assert len({(file["scope"], file["params_sha256"]) for file in files}) == 2
    assert len({file["local_sha256"] for file in files}) == 8
    assert all(file["local_params"] < file["params"] / 2 for file in files)


def test_signals_save_and_stop(gpt_run: Callable[[str], Run], train_py: str, tmp_path: Path) -> None:
    """SIGUSR1 to one rank saves, SIGTERM to the other saves and ends all with 143; the rest comes after."""
    env = clean_environment(MAPLE_RUN_DIR=str(tmp_path), MAPLE_STEP_SLEEP="0.2")
    words = f"--model gpt --paradigm ddp --steps {STEPS}".split()
    ranks = [
        subprocess.Popen(
            [sys.executable, "-P", train_py, *words],
            env={
                **env,
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": "2",
                **rendezvous(tmp_path),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    try:
        wait_for(lambda: '"step": 2,' in metrics(tmp_path), ranks)
        ranks[1].send_signal(signal.SIGUSR1)
        wait_for(lambda: '"SIGUSR1"' in metrics(tmp_path), ranks)
        step = int(json.loads(metrics(tmp_path).splitlines()[-1])["step"])
        wait_for(lambda: f'"step": {step + 2},' in metrics(tmp_path), ranks)
        ranks[0].send_signal(signal.SIGTERM)
        outputs = [process.communicate(timeout=60) for process in ranks]
    finally:
        for process in ranks:
            process.kill()
    assert [process.returncode for process in ranks] == [143, 143]
    assert [stderr for _, stderr in outputs] == ["", ""]
    stopped = Run(tmp_path, 143, outputs[0][0], "")
    saved = stopped.events("checkpoint")
    assert [event["reason"] for event in saved] == ["SIGUSR1", "SIGTERM"]
    assert saved[0]["step"] >= step
    assert stopped.events("terminated")[0]["step"] == saved[1]["step"] < STEPS
    assert all((Path(event["path"]) / "manifest.json").exists() for event in saved)
    result = run(gpt_command(train_py, "ddp"), tmp_path, MAPLE_RESUME="1")
    assert result.code == 0, result.stderr
    assert result.losses() == gpt_run("ddp").losses()


def rendezvous(folder: Path) -> dict[str, str]:
    """MASTER_ADDR and a free MASTER_PORT, the same at each call for one ``folder``."""
    file = folder / "port"
    if not file.exists():
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            file.write_text(str(probe.getsockname()[1]))
    return {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": file.read_text()}


def metrics(folder: Path) -> str:
    """metrics.jsonl as far as it is written."""
    file = folder / "metrics.jsonl"
    return file.read_text(encoding="utf-8") if file.exists() else ""


def wait_for(condition: Callable[[], bool], ranks: list[subprocess.Popen[str]]) -> None:
    """Waits until ``condition`` holds, at most two minutes and while all ranks run."""
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        assert [process.poll() for process in ranks] == [None] * len(ranks)
        time.sleep(0.05)


def test_failure_on_purpose(train_py: str, tmp_path: Path) -> None:
    command = [sys.executable, "-I", train_py, *["--model", "vit", "--paradigm", "ddp", "--local_rank=0"]]
    result = run(command, tmp_path, MAPLE_FAIL="0:3:7")
    assert result.code == 7
    assert max(result.losses()) == 2


def test_bf16(train_py: str, tmp_path: Path) -> None:
    words: list[str] = []
    for paradigm in PARADIGMS:
        words += ["--", *f"--model gpt --paradigm {paradigm} --precision bf16".split(), "--steps", str(STEPS)]
    done = run(torchrun_command(2, str(SEVERAL), train_py, str(tmp_path), *words), tmp_path)
    for number in range(len(PARADIGMS)):
        Run(tmp_path / str(number), done.code, done.stdout, done.stderr).check_learned(2)


ERRORS = [
    ("--model gpt --paradigm pp --batch-size 6", {}, "--batch-size 6 is not divisible into 4 micro-batches"),
    ("--model vit --paradigm 3d", {}, "--paradigm 3d is for --model gpt alone"),
    ("--model gpt --paradigm 3d --dp 2", {}, "1 ranks cannot be split into dp 2"),
    ("--model gpt --paradigm ddp --tp 2", {}, "are for --paradigm 3d"),
    ("--model gpt --paradigm other", {}, "invalid choice: 'other'"),
    ("--paradigm ddp", {}, "--model"),
    ("--model gpt --paradigm ddp --steps 0", {}, "--steps must be 1 or more"),
    ("--model gpt --paradigm ddp", {"WORLD_SIZE": "2"}, "must also set RANK, LOCAL_RANK"),
    ("--model gpt --paradigm ddp", {"MAPLE_DEVICE": "tpu"}, "MAPLE_DEVICE must be cuda, xpu or cpu"),
    ("--model gpt --paradigm ddp", {"MAPLE_DEVICE": "xpu"}, "sees no xpu device"),
    ("--model gpt --paradigm ddp", {"MAPLE_BACKEND": "none"}, "MAPLE_BACKEND is 'none'"),
    ("--model gpt --paradigm ddp", {"MAPLE_FAIL": "0:1"}, "MAPLE_FAIL must be RANK:STEP:CODE"),
]


@pytest.mark.parametrize("arguments, environment, message", ERRORS)
def test_mistakes_get_one_line(
    train_py: str, tmp_path: Path, arguments: str, environment: dict[str, str], message: str
) -> None:
    result = run([sys.executable, "-I", train_py, *arguments.split()], tmp_path, **environment)
    assert result.code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_zero_without_deepspeed_says_so(train_py: str, tmp_path: Path) -> None:
    hide = f"import runpy, sys; sys.modules['deepspeed'] = None; sys.argv[0] = {train_py!r}; "
    code = hide + "runpy.run_path(sys.argv[0], run_name='__main__')"
    command = [sys.executable, "-I", "-c", code, *["--model", "gpt", "--paradigm", "zero"]]
    result = run(command, tmp_path)
    assert (result.code, result.stderr.count("\n")) == (2, 1)
    assert "pip install deepspeed" in result.stderr


def test_resume_refuses_another_kind_of_run(train_py: str, tmp_path: Path) -> None:
    words = ["--paradigm", "ddp", "--steps", "1", "--checkpoint-every", "1"]
    one = [sys.executable, "-I", train_py, *words, "--model"]
    assert run([*one, "gpt"], tmp_path).code == 0
    refused = run([*one, "bert"], tmp_path, MAPLE_RESUME="1")
    assert refused.code == 2
    assert "its model is gpt, not bert as here" in refused.stderr
