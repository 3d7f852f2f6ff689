"""Places in a script, and what the file itself is like."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Line and column (characters, from 1), in ``file`` or, where that is empty, in the script itself."""

    line: int
    column: int
    file: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that makes the text hard or impossible to read.

    Kinds: ``binary`` ``empty`` ``too_large`` ``nul`` ``bad_utf8`` ``utf16`` ``unterminated_quote``
    ``unterminated_heredoc`` ``syntax`` ``too_deep`` ``too_complex`` ``malformed``.
    """

    kind: str
    place: Place
    text: str = ""


@dataclass(frozen=True, slots=True)
class OddCharacter:
    """A character that looks like ASCII and is not: a dash, a quote, a blank."""

    place: Place
    character: str
    meant: str
    in_comment: bool


@dataclass(frozen=True, slots=True)
class Shebang:
    """The ``#!`` line: ``late`` when it is not the very first thing in the file."""

    text: str
    place: Place
    late: bool


@dataclass(frozen=True)
class Format:
    """Facts of the file itself."""

    size: int
    lines: int
    bom: bool = False
    crlf: tuple[int, ...] = ()
    nul: bool = False
    utf8: bool = True
    odd: tuple[OddCharacter, ...] = ()
    shebang: Shebang | None = None
    blank_after_backslash: tuple[Place, ...] = ()
