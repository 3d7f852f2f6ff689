"""Shell text and its syntax tree, with places in the file it came from."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import local
from time import process_time
from typing import TYPE_CHECKING

from maple_parsl.script.model import Fault, Place
from maple_parsl.script.text import Lines
from maple_parsl.script.values import Part, Symbol

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_FIRST_HOLE = 0xE000
_MOST_HOLES = 0x1800
_HOLES = re.compile("[\ue000-\uf7ff]")


_OWN = local()


def parser() -> Parser:
    """The bash grammar, loaded once in each thread: a parser that two threads use at a time crashes."""
    if not hasattr(_OWN, "parser"):
        import tree_sitter_bash
        from tree_sitter import Language, Parser

        _OWN.parser = Parser(Language(tree_sitter_bash.language()))
    found: Parser = _OWN.parser
    return found


# The grammar takes several assignments on a line as the beginning of a command on the lines below, does not know
# 3<>file, and takes $(((X)) && ...), a command substitution, for arithmetic. All are changed, byte for byte, in what
# the grammar sees only.
_PART = rb"""(?:"[^"\n`$]*"|'[^'\n]*'|[^\s"'`;&|()<>$#]|\$\w++|\$\{[^}\n]*\}|\$\(\(?[^\n()]*\)?\))"""
_SEVERAL = re.compile(
    rb"^[ \t]*+[A-Za-z_]\w*+\+?=" + _PART + rb"*+(?:[ \t]++[A-Za-z_]\w*+\+?=" + _PART + rb"*+)++[ \t]*+\n", re.M
)
_LARGE, _CHUNK, _LONGEST = 1 << 14, 1 << 11, 2.0
_OPERATORS = (b"|", b"&", b"<", b"`", b"(", b"{", b"$")
_MOST_OPERATORS = 1500
# The grammar's scanner looks characters up in C tables that end at 255, and can crash beyond; to bash, all that is not
# ASCII is a letter like any other.
_AS_LETTERS = bytes(range(128)) + b"x" * 128
_ARITHMETIC_FIRST = re.compile(rb"\$\(\(\(([^()\n]*)\)\)(?=\s*(?:&&|\|\|))")
_BOTH_WAYS = re.compile(rb"(\d)<>(?=[\"'/$\w])")


def parse(code: Code, inside: Iterable[tuple[int, int]] = ()) -> Node:
    """The syntax tree; ``inside``: lines of here-documents, which are left as they are."""
    data = code.data
    if not data.isascii():
        data = data.translate(_AS_LETTERS)
    if b"<>" in data:
        data = _BOTH_WAYS.sub(rb"\1< ", data)
    if b"$(((" in data:
        data = _ARITHMETIC_FIRST.sub(rb"$( (\1) ", data)
    ends = [m.end() for m in _SEVERAL.finditer(data)]
    if ends:
        rows = Lines(code.text)
        spans = [(rows.line(a), rows.line(b + 1)) for a, b in inside]
        changed = bytearray(data)
        for end in ends:
            at = bisect_right(spans, (end, len(data) + 1)) - 1
            if at < 0 or end > spans[at][1]:
                changed[end - 1 : end] = b";"
        data = bytes(changed)
    if len(data) >= _CHUNK:
        data = data[: _tame(data)]
    return parser().parse(data if len(data) < _LARGE else _in_time(data)).root_node


def _tame(data: bytes) -> int:
    """Where the first statement begins that has thousands of operators: on it the grammar takes memory and time
    by the square."""
    at = start = count = 0
    while at < len(data):
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        row = data[at:end]
        count += sum(row.count(mark) for mark in _OPERATORS)
        if count > _MOST_OPERATORS:
            return start
        at = end + 1
        if not row.rstrip().endswith((b"|", b"&", b"\\")):
            start, count = at, 0
    return len(data)


def _in_time(data: bytes) -> Callable[[int, object], bytes]:
    """Hands a large text to the grammar piece by piece, and ends it when that takes too long: some texts, such as
    thousands of here-documents on one line, cost the grammar the square of their length."""
    start = process_time()

    def chunk(offset: int, point: object) -> bytes:
        return data[offset : offset + _CHUNK] if process_time() - start < _LONGEST else b""

    return chunk


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a word: where it comes from in the code's own bytes, whether its bytes are the source's (``linear``),
    whether it is split into words, and whether a new word begins here (``cut``)."""

    part: Part
    offset: int
    linear: bool
    split: bool = False
    cut: bool = False


class Code:
    """Shell text: the whole script, a nested one, or the text of ``bash -c``.

    Symbols that an outer shell filled in stand in the text as single private characters (``holes``).
    """

    def __init__(
        self,
        text: str,
        lines: Lines,
        segments: list[tuple[int, int, bool]] | None = None,
        holes: tuple[Symbol, ...] = (),
    ) -> None:
        self.text = text
        self.data = text.encode("utf-8", "surrogatepass")
        self.lines = lines
        self.holes = holes
        self._segments = segments or [(0, 0, True)]
        self._starts = [s[0] for s in self._segments]

    def origin(self, offset: int) -> tuple[int, bool]:
        """Byte offset in the file, and whether the text runs along with it."""
        start, source, linear = self._segments[max(0, bisect_right(self._starts, offset) - 1)]
        return (source + offset - start, True) if linear else (source, False)

    def place(self, offset: int) -> Place:
        return self.lines.at(self.origin(offset)[0])

    def slice(self, start: int, end: int) -> str:
        return self.data[start:end].decode("utf-8", "replace")

    def node(self, node: Node) -> str:
        return self.data[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def parts(self, text: str) -> list[Part]:
        """Text with its holes turned back into symbols."""
        if not self.holes or not _HOLES.search(text):
            return [text] if text else []
        row: list[Part] = []
        at = 0
        for match in _HOLES.finditer(text):
            index = ord(match[0]) - _FIRST_HOLE
            if index < len(self.holes):
                row.extend((text[at : match.start()], self.holes[index]))
                at = match.end()
        row.append(text[at:])
        return [p for p in row if p != ""]

    def tree(self) -> Node:
        """Its syntax tree."""
        from maple_parsl.script.directives import heredoc_lines

        return parse(self, heredoc_lines(self.text.split("\n"))[0] if "<<" in self.text else ())

    def inner(self, pieces: Iterable[tuple[Part, int, bool]], lines: Lines | None = None) -> Code:
        """Code made of parts, each with its byte offset in the file."""
        text: list[str] = []
        segments: list[tuple[int, int, bool]] = []
        holes: list[Symbol] = []
        at = 0
        for part, offset, linear in pieces:
            if isinstance(part, Symbol):
                if len(holes) >= _MOST_HOLES:
                    continue
                piece, linear = chr(_FIRST_HOLE + len(holes)), False
                holes.append(part)
            else:
                piece = _HOLES.sub("?", part) if not part.isascii() else part
            segments.append((at, offset, linear))
            text.append(piece)
            at += len(piece.encode("utf-8", "surrogatepass"))
        return Code("".join(text), lines or self.lines, segments, tuple(holes))


def faults(code: Code, root: Node, most: int = 20) -> list[Fault]:
    """Where the grammar could not follow."""
    found: list[Fault] = []
    if not root.has_error:
        return found
    stack = [root]
    seen = 0
    while stack and len(found) < most and seen < 200_000:
        node = stack.pop()
        seen += 1
        if node.is_missing:
            kind = "unterminated_quote" if node.type in ('"', "'", "`") else "syntax"
            place = node.parent.start_byte if node.parent else node.start_byte
            found.append(Fault(kind, code.place(place), f"missing {node.type}"))
            continue
        if node.is_error:
            text = code.node(node)
            kind = "unterminated_quote" if text[:1] in "\"'" or _odd_quotes(text) else "syntax"
            found.append(Fault(kind, code.place(node.start_byte), text.split("\n")[0][:80]))
        if node.has_error:
            stack.extend(reversed(node.children))
    return found


def _odd_quotes(text: str) -> bool:
    bare = re.sub(r"\\.", "", text, flags=re.S)
    return bare.count("'") % 2 == 1 or bare.count('"') % 2 == 1
