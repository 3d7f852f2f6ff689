"""Whatever the bytes are, a diagnosis comes back, and nothing in it drives a terminal."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maple_parsl.diagnosis import LogSource, diagnose

PIECES = [
    line
    for folder in sorted((Path(__file__).parents[1] / "cases" / "logs").iterdir())
    for name in ("stderr.log", "stdout.log")
    if (folder / name).exists()
    for line in (folder / name).read_bytes().split(b"\n")[:40]
]
PIECES += [
    b"\x00\xff\xfe",
    b"\x1b[2J\x1b]0;x\x07",
    b"\xe2\x80",
    b"\r\r\r",
    b"\x1f\x8b\x08",
    b"[rank",
    b"Traceback (most",
]
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.one_of(st.binary(max_size=80), st.sampled_from(PIECES)), max_size=60),
    st.one_of(st.none(), st.text(max_size=200)),
    st.one_of(st.none(), st.text(max_size=100)),
)
def test_any_bytes(pieces: list[bytes], script: str | None, accounting: str | None) -> None:
    result = diagnose([LogSource.of_text("log", b"\n".join(pieces))], script=script, accounting=accounting)
    for cause in (*result.causes, *result.consequences):
        assert not _CONTROL.search(cause.explanation + cause.evidence.text)
    for line in result.suspicious:
        assert not _CONTROL.search(line.text)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=4000))
def test_gzip_like_bytes(data: bytes) -> None:
    diagnose([LogSource.of_text("log", b"\x1f\x8b" + data)])
