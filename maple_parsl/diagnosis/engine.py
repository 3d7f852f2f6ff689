"""Many patterns at once, in time linear in the text: RE2 over bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

import re2

from maple_parsl.errors import ConfigurationError


class Match(Protocol):
    """What a match offers."""

    def start(self) -> int: ...

    def end(self) -> int: ...

    def groupdict(self) -> dict[bytes, bytes | None]: ...


class Pattern(Protocol):
    """A compiled pattern over bytes."""

    def search(self, text: bytes, pos: int = 0) -> Match | None: ...


def _options(megabytes: int, *, across_lines: bool = True) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # bytes: broken UTF-8 must not stop a match
    options.max_mem = megabytes << 20
    options.log_errors = False
    options.never_nl = not across_lines
    return options


_SMALL = _options(8)
_NAMED = re.compile(r"(?<!\\)\(\?P<\w+>")


def compile_pattern(pattern: str) -> Pattern:
    """One pattern; raises :class:`ConfigurationError` when RE2 does not take it."""
    try:
        compiled: Pattern = re2.compile(pattern.encode(), _SMALL)
    except Exception as error:
        raise ConfigurationError(f"the pattern {pattern!r} is not RE2 syntax: {error}") from None
    return compiled


def compile_any(patterns: Sequence[str]) -> Pattern:
    """A pattern that matches where any of ``patterns`` does."""
    joined = "|".join(f"(?:{_unnamed(pattern)})" for pattern in patterns)
    compiled: Pattern = re2.compile(joined.encode(), _options(64, across_lines=False))
    return compiled


def _unnamed(pattern: str) -> str:
    """Without captures, which cost time where only whether a line matches is asked."""
    return _NAMED.sub("(?:", pattern)


class PatternSet:
    """Tells which of many patterns a text matches."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._set: Any = re2.Set.SearchSet(_options(64))
        for pattern in patterns:
            self._set.Add(_unnamed(pattern).encode())
        self._set.Compile()
        self._empty = not patterns

    def matches(self, text: bytes) -> list[int]:
        """Indices of the patterns that ``text`` matches."""
        return [] if self._empty else sorted(self._set.Match(text) or ())
