"""Whatever the file, check says something in every form, soon."""

from __future__ import annotations

import random
from time import process_time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.fuzz_check import one
from tests.golden.test_golden import HERE
from tests.property.test_read_anything import PIECES

KEPT = tuple(file.read_bytes() for file in sorted(HERE.glob("*/ddp.sh")))
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@QUICK
@given(st.binary(max_size=300))
def test_bytes(data: bytes) -> None:
    one(data)


@QUICK
@given(st.lists(st.sampled_from(PIECES), max_size=30))
def test_shell_like(pieces: list[str]) -> None:
    one("".join(pieces).encode("utf-8", "surrogatepass"))


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(KEPT), st.integers(0, 2**32))
def test_kept_scripts_damaged(kept: bytes, seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(kept)
    for _ in range(chance.randint(1, 10)):
        at = chance.randrange(len(data))
        if chance.random() < 0.4:
            del data[at : at + chance.randint(1, 60)]
        elif chance.random() < 0.6:
            data[at:at] = chance.choice(PIECES).encode("utf-8", "surrogatepass")
        else:
            data[at] = chance.randrange(256)
    one(bytes(data))


@pytest.mark.parametrize(
    "data",
    [
        b"echo hello $X\n" * 750_000, b"\0" * 10_000_000, b"x" * 10_000_000, bytes(range(256)) * 4000,
        b"#SBATCH -N 2\n" * 20_000, b"srun 'x\n" * 3000, b"cat <<E\n" * 3000, b"\xff\xfe" * 5000, b"\r" * 5000,
    ],
    ids=lambda data: repr(data[:12]),
)  # fmt: skip
def test_large_and_odd_files_take_seconds(data: bytes) -> None:
    started = process_time()
    one(data)
    assert process_time() - started < 20
