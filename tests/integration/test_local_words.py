"""Three words train on this machine: every model with every paradigm, through `run` as a user types it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import maple_parsl
from tests.integration import kills

pytestmark = [pytest.mark.torch, pytest.mark.timeout(240)]
MODELS = ("gpt", "bert", "vit", "resnet", "unet")
PARADIGMS = ("ddp", "fsdp", "tp", "pp")
WORDS = [(model, paradigm) for model in MODELS for paradigm in PARADIGMS]


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kills.prepare(tmp_path, monkeypatch)


@pytest.mark.parametrize("model,paradigm", [*WORDS, ("gpt", "zero"), ("gpt", "3d")])
def test_it_trains(model: str, paradigm: str) -> None:
    trains(model, paradigm)


@pytest.mark.parametrize("template", ["deepspeed", "deepspeed-hostfile", "deepspeed-per-node"])
def test_zero_under_deepspeeds_launch_styles(template: str) -> None:
    trains("gpt", "zero", template=template, parallelism={"zero_stage": 2})


def trains(model: str, paradigm: str, **more: Any) -> None:
    fields = {"environment": {"python": sys.executable}, "args": ("--steps", "12"), **more}
    outcome = maple_parsl.run(model, paradigm, "local", **fields).result(timeout=200)
    assert outcome.ok, outcome
    assert outcome.code == 0
    assert outcome.metrics is not None
    assert outcome.metrics.last_loss < outcome.metrics.first_loss, outcome


def test_other_models_have_no_3d() -> None:
    with pytest.raises(maple_parsl.ComposeError, match="3d for gpt only"):
        maple_parsl.run("vit", "3d", "local")
