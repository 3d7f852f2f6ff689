"""Words of a command -> values: quoting, parameters, arrays, arithmetic, command substitution."""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING, Protocol

from maple_parsl.script.arithmetic import evaluate
from maple_parsl.script.model import Arg, Variable
from maple_parsl.script.syntax import Code, Piece
from maple_parsl.script.values import EMPTY, Part, Symbol, Value, assume, choice, const, join, sym, unknown

if TYPE_CHECKING:
    from tree_sitter import Node

_EXPANSIONS = frozenset(
    "simple_expansion expansion command_substitution arithmetic_expansion process_substitution".split()
)
_PARAMETER = re.compile(r"([!#]?)([A-Za-z_]\w*|[0-9]+|[@*#?$!_-])(?:\[(.*?)\])?(.*)\Z", re.S)
_ESCAPE = re.compile(r"\\(\n|.)", re.S)
_QUOTED_ESCAPE = re.compile(r'\\([$`"\\\n])')
_HEREDOC_ESCAPE = re.compile(r"\\([$`\\\n])")
_OPERATORS = (":-", ":=", ":+", ":?", "-", "=", "+", "?")
_NO_WORD = re.compile(r'"(\$@|\$\{@\}|\$\{\w+\[@\][^}"]*\})"\Z')
_ANSI = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"', "r": "\r", "e": "\x1b"}


class Scope(Protocol):
    """What an expansion asks of the shell it happens in."""

    code: Code
    positional: list[Arg]

    def lookup(self, name: str) -> Value: ...
    def variable(self, name: str) -> Variable | None: ...
    def refer(self, name: str, offset: int, value: Value, quoted: bool, operator: str) -> None: ...
    def assign(self, name: str, value: Value, text: str, offset: int, how: str) -> None: ...
    def substitute(self, node: Node) -> Value: ...
    def enter(self) -> bool: ...
    def leave(self) -> None: ...


def words(scope: Scope, node: Node) -> list[Arg]:
    """The words one syntax node becomes: none, one, or many."""
    code = scope.code
    source = code.node(node)
    quote = source[:1] if source[:1] in "\"'" and node.type != "concatenation" else ""
    made: list[Arg] = []
    row: list[tuple[Part, int, bool]] = []
    present = bool(quote) and not _NO_WORD.match(source)

    def finish() -> None:
        nonlocal row, present
        if row or present:
            value = join(part for part, _, _ in row)
            place = code.place(node.start_byte)
            made.append(Arg(value, source, place, quote, _origins(row)))
        row, present = [], False

    for piece in pieces(scope, node, False):
        if piece.cut:
            finish()
            present = True
            continue
        if not piece.split or isinstance(piece.part, Symbol):
            row.append((piece.part, *_source(code, piece)))
            continue
        text = piece.part
        if text[:1].isspace() and row:
            finish()
        fragments = text.split()
        for index, fragment in enumerate(fragments):
            if index:
                finish()
            row.append((fragment, *_source(code, piece)))
        if fragments and text[-1:].isspace():
            finish()
    finish()
    return made


def _source(code: Code, piece: Piece) -> tuple[int, bool]:
    offset, linear = code.origin(piece.offset)
    return offset, linear and piece.linear


def _origins(row: list[tuple[Part, int, bool]]) -> tuple[tuple[Part, int, bool], ...]:
    return tuple(row)


def value(scope: Scope, node: Node | None) -> Value:
    """The value of a word that is not split (the right side of an assignment, the inside of quotes)."""
    if node is None:
        return EMPTY
    return join(piece.part for piece in pieces(scope, node, True) if not piece.cut)


def pieces(scope: Scope, node: Node, quoted: bool) -> list[Piece]:
    """Parts of a word in order."""
    kind = node.type
    code = scope.code
    start = node.start_byte
    if kind in _EXPANSIONS:
        return expansion(scope, node, quoted)
    if kind == "raw_string":
        return _literal(code, start + 1, code.slice(start + 1, max(start + 1, node.end_byte - 1)))
    if kind == "string" or kind == "translated_string":
        skip = 2 if kind == "translated_string" else 1
        end = node.end_byte - 1 if code.data[node.end_byte - 1 : node.end_byte] == b'"' else node.end_byte
        inside = node.children[-1] if kind == "translated_string" and node.children else node
        return between(scope, inside, start + skip, max(end, start + skip), _QUOTED_ESCAPE, True)
    if kind == "ansi_c_string":
        text = re.sub(r"\\(.)", lambda m: _ANSI.get(m[1], m[0]), code.node(node)[2:-1], flags=re.S)
        return [Piece(text, start + 2, False)] if text else []
    if kind == "concatenation" or kind == "array":
        return [p for child in node.children for p in pieces(scope, child, quoted)]
    if kind in ("(", ")") and node.parent is not None and node.parent.type == "array":
        return []
    if node.child_count:
        return between(scope, node, start, node.end_byte, _ESCAPE, quoted)
    return _unescaped(code, start, node.end_byte, _ESCAPE)


def between(scope: Scope, node: Node, start: int, end: int, escape: re.Pattern[str], quoted: bool) -> list[Piece]:
    """Text from ``start`` to ``end`` with the expansions among a node's children carried out."""
    found: list[Piece] = []
    at = start
    for child in node.children:
        if child.start_byte < at or child.end_byte > end:
            continue
        if child.type in _EXPANSIONS or (not quoted and child.type in ("string", "raw_string", "concatenation")):
            found.extend(_unescaped(scope.code, at, child.start_byte, escape))
            found.extend(pieces(scope, child, quoted))
            at = child.end_byte
    found.extend(_unescaped(scope.code, at, end, escape))
    return found


def _literal(code: Code, offset: int, text: str) -> list[Piece]:
    found = []
    for part in code.parts(text):
        found.append(Piece(part, offset, isinstance(part, str)))
        offset += len(part.encode("utf-8", "surrogatepass")) if isinstance(part, str) else 3
    return found


def _unescaped(code: Code, start: int, end: int, escape: re.Pattern[str]) -> list[Piece]:
    if start >= end:
        return []
    text = code.slice(start, end)
    if "$$" in text and "\\" not in text:
        at = start + len(text[: text.index("$$")].encode("utf-8", "surrogatepass"))
        before = _literal(code, start, text[: text.index("$$")])
        return [*before, Piece(Symbol("special", "$"), at, False), *_unescaped(code, at + 2, end, escape)]
    if "\\" not in text:
        return _literal(code, start, text)
    found: list[Piece] = []
    at = 0
    for match in escape.finditer(text):
        offset = start + len(text[:at].encode("utf-8", "surrogatepass"))
        found.extend(_literal(code, offset, text[at : match.start()]))
        if match[1] != "\n":
            offset = start + len(text[: match.start(1)].encode("utf-8", "surrogatepass"))
            found.extend(_literal(code, offset, match[1]))
        at = match.end()
    found.extend(_literal(code, start + len(text[:at].encode("utf-8", "surrogatepass")), text[at:]))
    return found


def _value_pieces(found: Value, offset: int, quoted: bool) -> list[Piece]:
    return [Piece(part, offset, False, split=not quoted) for part in found.parts]


def expansion(scope: Scope, node: Node, quoted: bool) -> list[Piece]:
    """One ``$…`` construct."""
    offset = node.start_byte
    if not scope.enter():
        return [Piece(Symbol("unknown", "too deep"), offset, False)]
    try:
        kind = node.type
        if kind == "simple_expansion":
            return _parameter(scope, scope.code.node(node)[1:], node, quoted)
        if kind == "expansion":
            return _parameter(scope, scope.code.node(node)[2:-1], node, quoted)
        if kind == "command_substitution":
            return _value_pieces(scope.substitute(node), offset, quoted)
        if kind == "arithmetic_expansion":
            return _value_pieces(arithmetic(scope, node), offset, quoted)
        scope.substitute(node)
        return [Piece(Symbol("unknown", scope.code.node(node)), offset, False)]
    finally:
        scope.leave()


def arithmetic(scope: Scope, node: Node) -> Value:
    """``$(( … ))``, ``(( … ))`` or an index."""
    source = scope.code.node(node)
    head = 3 if source.startswith("$((") else 2 if source.startswith(("$[", "((")) else 0
    tail = 2 if source.endswith("))") and head >= 2 and source[:2] != "$[" else 1 if source[:2] == "$[" else 0
    flat = _flat(scope, node, node.start_byte + head, node.end_byte - tail)

    def lookup(name: str) -> Value:
        found = scope.lookup(name)
        scope.refer(name, node.start_byte, found, True, "((")
        return found

    return evaluate(flat, lookup, source)


def _flat(scope: Scope, node: Node, start: int, end: int) -> Value:
    """Text of an expression with every ``$`` in it expanded, however deep it stands in the tree."""
    parts: list[Part] = []
    at = start
    stack = list(reversed(node.children))
    while stack:
        child = stack.pop()
        if child.start_byte < at or child.end_byte > end:
            continue
        if child.type in _EXPANSIONS or child.type == "string":
            parts.extend(scope.code.parts(scope.code.slice(at, child.start_byte)))
            parts.extend(value(scope, child).parts)
            at = child.end_byte
        elif child.child_count:
            stack.extend(reversed(child.children))
    parts.extend(scope.code.parts(scope.code.slice(at, end)))
    return join(parts)


def _parameter(scope: Scope, text: str, node: Node, quoted: bool) -> list[Piece]:
    offset = node.start_byte
    match = _PARAMETER.match(text)
    if not match:
        return [Piece(Symbol("unknown", text), offset, False)]
    mark, name, index, rest = match.groups()
    if name in "@*" or index in ("@", "*"):
        return _all(scope, mark, name, index, rest, node, quoted)
    held = scope.variable(name) if index is not None else None
    found = scope.lookup(name) if index is None else _element(scope, name, index, held)
    if mark == "!":
        scope.refer(name, offset, found, quoted, "!")
        target = found.text
        pointed = scope.lookup(target) if target and target.isidentifier() else unknown(text)
        return _value_pieces(pointed, offset, quoted)
    operator = next((o for o in _OPERATORS if rest.startswith(o)), rest[:1])
    scope.refer(name, offset, found, quoted, operator if operator else ("#" if mark == "#" else ""))
    if mark == "#":
        known = found.text
        return _value_pieces(const(len(known)) if known is not None else unknown(text), offset, quoted)
    if rest:
        found = _operated(scope, found, rest, operator, node, name)
    return _value_pieces(found, offset, quoted)


def _all(scope: Scope, mark: str, name: str, index: str | None, rest: str, node: Node, quoted: bool) -> list[Piece]:
    """``$@``, ``${array[@]}``, ``${#array[@]}``."""
    offset = node.start_byte
    if name in "@*":
        items: list[Value] | None = [arg.value for arg in scope.positional]
        args: list[Arg] = scope.positional
        held = EMPTY
    else:
        variable = scope.variable(name)
        held = variable.value if variable else scope.lookup(name)
        items = list(variable.items) if variable and variable.items is not None else None
        args = []
        scope.refer(name, offset, held, quoted, f"{mark}[{index}]")
    if items is None:
        symbol = held.symbol
        hosts = symbol is not None and symbol.kind in ("host_list", "node_lines")
        if mark == "#":
            counted = scope.lookup("SLURM_NNODES") if hosts else unknown(node.type + name)
            if hosts and symbol is not None and symbol.kind == "node_lines":
                counted = sym("task_slots", name, 1)
            return _value_pieces(counted, offset, quoted)
        if not held.parts and not mark:
            return []
        if rest and hosts:
            return [Piece(Symbol("host_list", name, derived=True), offset, False)]
        return _value_pieces(held, offset, quoted or held.is_a("host_list"))
    if mark == "#":
        return _value_pieces(const(len(items)), offset, True)
    if mark == "!":
        return _value_pieces(const(" ".join(str(n) for n in range(len(items)))), offset, quoted)
    if rest.startswith(":") and (sliced := re.match(r":\s*(\d+)\s*(?::\s*(\d+))?\Z", rest)):
        first = int(sliced[1]) - (1 if name in "@*" else 0)
        count = int(sliced[2]) if sliced[2] else len(items)
        items, args = items[max(0, first) : first + count], args[max(0, first) : first + count]
    elif rest:
        return [Piece(Symbol("unknown", rest), offset, False)]
    joined = name == "*" or index == "*"
    found: list[Piece] = []
    for position, item in enumerate(items):
        if position:
            found.append(Piece(" ", offset, False, split=not quoted) if joined and quoted else _cut(offset))
        found.extend(Piece(part, offset, False, split=not quoted) for part in item.parts)
    return found


def _cut(offset: int) -> Piece:
    return Piece("", offset, False, cut=True)


def _element(scope: Scope, name: str, index: str, held: Variable | None) -> Value:
    if held is None:
        return scope.lookup(name) if index == "0" else unknown(f"{name}[{index}]")
    text = index
    if not (index.lstrip("-").isdigit() and len(index) < 8):
        inner = scope.lookup(index.lstrip("$").strip("{}"))
        text = inner.text or ""
        if not text.isdigit():
            symbol = held.value.symbol
            if symbol and symbol.kind in ("host_list", "node_lines"):
                return sym("host", index)
            return choice(held.items) if held.items else unknown(f"{name}[{index}]")
    number = int(text)
    if held.items is not None:
        try:
            return held.items[number]
        except IndexError:
            return EMPTY
    symbol = held.value.symbol
    if symbol and symbol.kind in ("host_list", "node_lines"):
        if number == 0:
            return sym("first_host", symbol.detail)
        return sym("last_host" if number == -1 else "host", text)
    return held.value if number == 0 else EMPTY


def _operated(scope: Scope, found: Value, rest: str, operator: str, node: Node, name: str) -> Value:
    if operator in _OPERATORS:
        other = _default(scope, node, operator)
        return _with_default(scope, found, other, operator, node, name)
    known = found.text
    if operator in "%#":
        return _stripped(scope, found, rest, node)
    if operator == "/" and known is not None:
        everywhere = rest.startswith("//")
        pattern, _, new = rest.lstrip("/").partition("/")
        if not re.search(r"[*?\[\]$`]", pattern + new):
            pattern, new = pattern.replace("\\", ""), new.replace("\\", "")
            return const(known.replace(pattern, new) if everywhere else known.replace(pattern, new, 1))
        return unknown(rest)
    if operator == ":" and (part := re.match(r":\s*\(?(-?\d{1,6})\)?(?::(\d{1,6}))?\s*\Z", rest)):
        start = int(part[1])
        if known is not None:
            tail = known[start:] if start >= -len(known) else known
            return const(tail[: int(part[2])] if part[2] else tail)
        symbol = found.symbol
        if symbol and symbol.kind in ("job_id", "random") and -9 <= start < 0 and not part[2]:
            return sym(symbol.kind, symbol.detail, 0, 10**-start - 1, derived=True)
    if operator in "^," and known is not None:
        return const(known.upper() if rest.startswith("^^") else known.lower() if rest.startswith(",,") else known)
    symbol = found.symbol
    if symbol and symbol.kind != "unknown":
        return Value((Symbol(symbol.kind, symbol.detail, derived=True),))
    return unknown(name + rest)


def _default(scope: Scope, node: Node, operator: str) -> Value:
    """The word behind ``:-`` and its like."""
    after = False
    start = node.end_byte - 1
    for child in node.children:
        if after:
            start = min(start, child.start_byte)
            break
        if not child.is_named and child.type == operator:
            after, start = True, child.end_byte
            break
    else:
        return unknown(scope.code.node(node))
    return join(p.part for p in between(scope, node, start, node.end_byte - 1, _ESCAPE, False) if not p.cut)


def _with_default(scope: Scope, found: Value, other: Value, operator: str, node: Node, name: str) -> Value:
    symbol = found.symbol
    kind = symbol.kind if symbol else ""
    empty = found.text == ""
    absent = kind == "unset" or empty
    doubtful = kind in ("environment", "positional")
    if operator in ("?", ":?"):
        return found
    if operator in ("+", ":+"):
        return EMPTY if absent else choice([EMPTY, other]) if doubtful or found.is_unknown else other
    if absent:
        result = other
    elif doubtful:
        result = assume(other)
    elif found.is_unknown:
        result = choice([found, other]) if other.parts else found
    else:
        result = found
    if operator in (":=", "="):
        scope.assign(name, result, scope.code.node(node), node.start_byte, "default")
    return result


def _stripped(scope: Scope, found: Value, rest: str, node: Node) -> Value:
    operator = rest[:2] if rest[:2] in ("%%", "##") else rest[:1]
    pattern = rest[len(operator) :].strip("\"'")
    known = found.text
    if "$" in pattern or "`" in pattern:
        return unknown(rest)
    if known is not None and len(known) <= 4096:
        ends = [known[n:] if operator[0] == "%" else known[:n] for n in range(len(known) + 1)]
        order = range(len(known) + 1)
        if operator in ("%", "##"):
            order = range(len(known), -1, -1)
        pattern = pattern.replace("\\", "")
        for n in order:
            if fnmatch.fnmatchcase(ends[n], pattern):
                return const(known[:n] if operator[0] == "%" else known[n:])
        return found
    symbol = found.symbol
    if symbol and symbol.kind != "unknown":
        if symbol.kind == "job_id":
            return Value((Symbol("job_id", symbol.detail, 0, None),))
        if symbol.kind.endswith("host") and pattern.startswith((".", "*.")):
            return Value((Symbol(symbol.kind, "short"),))
        return Value((Symbol(symbol.kind, symbol.detail, derived=True),))
    return unknown(str(found) + rest)


def heredoc(scope: Scope, body: Node, expands: bool) -> list[tuple[Part, int, bool]]:
    """Parts of a here-document's text with their places in the file."""
    code = scope.code
    if not expands:
        row = _literal(code, body.start_byte, code.node(body))
    else:
        row = between(scope, body, body.start_byte, body.end_byte, _HEREDOC_ESCAPE, True)
    return [(piece.part, *_source(code, piece)) for piece in row]
