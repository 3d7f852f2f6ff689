"""No text makes the reader fail, take long, or say what was not said."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from maple_parsl.catalogue import Catalogue
from maple_parsl.extraction import extract

CATALOGUE = Catalogue.load({})
PIECES = [
    "polaris",
    "2",
    "nodes",
    "gpus",
    "per",
    "node",
    "x",
    "-",
    "--lr",
    "train.py",
    "1:30",
    "1h30m",
    "no",
    "sorry",
    ",",
    "account",
    "queue",
    "debug",
    "half",
    "an",
    "hour",
    "dozen",
    "zero",
    "tp",
    "8",
    "=",
    ":",
    '"',
    "{",
    "}",
    "from",
    "to",
    "[",
    "]",
    "'",
    "\n",
    "#SBATCH",
    "-N",
    "llama",
    "70b",
    "3d",
    "节点",
    "🚀",
    "é",
    "\u2028",
    "\x00",
    "args",
    "--",
]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40).map(" ".join) | st.text(max_size=300))
@example(words="args --lr -- polaris")
def test_any_text_is_read(words: str) -> None:
    reading = extract(words, CATALOGUE)
    for value in reading.values.values():
        assert 0 <= value.start <= value.end <= len(words)
    reading.to_dict()


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "1",
        " ",
        "node ",
        "2 nodes ",
        "((((",
        "--a ",
        "\n",
        "é",
        "节点",
        "a-",
        "1.",
        "x=1;",
        '"',
        "half an hour and ",
    ],
)
def test_a_hundred_kilobytes_are_read_in_a_moment(piece: str) -> None:
    started = time.process_time()
    extract(piece * (100_000 // len(piece)), CATALOGUE)
    assert time.process_time() - started < 5


@settings(max_examples=60, deadline=None)
@given(
    nodes=st.integers(1, 400),
    minutes=st.integers(5, 3000),
    account=st.from_regex(r"[a-z]{3,8}[0-9]{2,4}", fullmatch=True),
    order=st.permutations([0, 1, 2, 3, 4]),
)
def test_the_order_of_statements_does_not_matter(nodes: int, minutes: int, account: str, order: list[int]) -> None:
    said = ["on frontier", f"{nodes} nodes", f"{minutes} minutes", f"account {account}", "fsdp with go.py"]
    reading = extract(", ".join(said[place] for place in order), CATALOGUE)
    found = [reading.get(name) for name in ("site", "nodes", "walltime_min", "account", "script", "paradigm")]
    assert found == ["frontier", nodes, minutes, account, "go.py", "fsdp"]
