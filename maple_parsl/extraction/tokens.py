"""Words, numbers, files and marks of a text, each with its place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_AS = {"card": "word", "number_n": "number"}  # "two 3090s" are cards, no time; "2n" are nodes
LONGEST = 20_000  # characters that are read; nobody states a launch in more
Sort = Literal["word", "number", "clock", "span", "size", "file", "flag", "times", "mark", "line", "cjk"]
_EXTENSION = r"(?:py|sh|bash|slurm|sbatch|pbs|lsf|ya?ml|json|toml|cfg|ini|ipynb|sif|sqsh|sub|csh|r|jl)"
_UNIT = r"(?:days?|d|hours?|hrs?|hr|h|minutes?|mins?|min|m|seconds?|secs?|sec|s)"
_TOKEN = re.compile(
    rf"""
      (?P<line>\r?\n|\r)
    | (?P<flag>(?<![\w.-])--?[A-Za-z][\w-]{{0,60}})
    | (?P<file>[\w./~$@{{}}+-]{{0,200}}\.{_EXTENSION}(?![\w-]))
    | (?P<clock>(?<![\w.:])-?(?:\d{{1,3}}-\d{{1,2}}(?::\d{{2}}){{1,2}}|\d{{1,4}}:\d{{2}}(?::\d{{2}})?)(?![\w:]))
    | (?P<card>(?<![\w.-])[1-9]0[5-9]0s(?![\w]))
    | (?P<number_n>(?<![\w.-])\d{{1,5}}(?=[nN](?!\w)))
    | (?P<span>(?<![\w.-])(?:(?:\d{{1,6}}(?:\.\d{{1,6}})?{_UNIT}){{1,4}}|\d{{1,3}}h\d{{2}})(?![\w]))
    | (?P<size>(?<![\w.])(?:\d{{1,3}}x)?\d{{1,5}}(?:\.\d{{1,4}})?[bBT](?![\w]))
    | (?P<number>(?:(?<![\w.)])-)?\d{{1,15}}(?:,\d{{3}}(?!\d))*(?:\.\d{{1,9}})?(?:e[+-]?\d{{1,3}}(?!\w))?)
    | (?P<times>(?<=\d)[xX×*](?=\s?\d|\s?[A-Za-z]{{1,2}}\d{{2,4}}|\s?(?:gpu|node|full|nvidia|amd|intel)))
    | (?P<word>[A-Za-z_À-ÖØ-öø-ÿ][\wÀ-ÿ]{{0,80}}(?:['’.+@*-]{{1,2}}[A-Za-z0-9_À-ÿ]{{1,80}}){{0,12}}(?:\+\+)?)
    | (?P<cjk>[\u3040-\u30ff\u4e00-\u9fff]+)
    | (?P<mark>&&|\|\||\S)
    """,
    re.X | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text; ``low`` is its text in lower case."""

    sort: Sort
    text: str
    low: str
    start: int
    end: int


def tokens(text: str) -> list[Token]:
    """The tokens of the first ``LONGEST`` characters, in time linear in the text."""
    made: list[Token] = []
    for match in _TOKEN.finditer(text[:LONGEST]):
        sort, piece = _AS.get(match.lastgroup or "", match.lastgroup), match.group()
        assert sort is not None
        made.append(Token(sort, piece, piece.lower().replace("’", "'"), match.start(), match.end()))  # type: ignore[arg-type]
    return made
