"""Coverage-guided fuzzing of the reader: ``python tests/fuzz/fuzz_read.py CORPUS -max_total_time=3600`` (atheris)."""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["maple_parsl.script"]):
    from maple_parsl.script import rankmap, reader, walk  # noqa: F401


def one(data: bytes) -> None:
    """Whatever the bytes, a script comes back."""
    rankmap.rank_map(reader.read(data))


if __name__ == "__main__":
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
