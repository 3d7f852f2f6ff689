"""Shell arithmetic over values: exact where everything is a number, bounds where it is not."""

from __future__ import annotations

import re
from collections.abc import Callable

from maple_parsl.script.values import Symbol, Value, const, unknown

Lookup = Callable[[str], Value]
_TOKEN = re.compile(
    r"\s*(\d+#[0-9A-Za-z]*|0[xX][0-9a-fA-F]+|\d+|[A-Za-z_]\w*|\*\*|<<|>>|[<>=!]=|&&|\|\||[-+*/%()<>!~?:&|^,=])"
)
_LEVELS = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), ("<<", ">>"), ("+", "-"),
           ("*", "/", "%"), ("**",))  # fmt: skip
_DEEPEST = 60
_BIG = 1 << 62
Item = str | Symbol


class _CannotTell(Exception):
    pass


def evaluate(value: Value, lookup: Lookup, source: str = "") -> Value:
    """The result of an arithmetic expression whose ``$`` expansions are done."""
    items: list[Item] = []
    for part in value.parts:
        if isinstance(part, Symbol):
            items.append(part)
            continue
        at = 0
        while at < len(part) and len(items) < 400:
            match = _TOKEN.match(part, at)
            if not match:
                if part[at:].strip():
                    return unknown(source)
                break
            items.append(match[1])
            at = match.end()
    reader = _Reader(items, lookup, source)
    try:
        result = reader.level(0, 0)
        return result if reader.at == len(items) and items else unknown(source)
    except (_CannotTell, ZeroDivisionError, RecursionError):
        return unknown(source)


class _Reader:
    def __init__(self, items: list[Item], lookup: Lookup, source: str) -> None:
        self.items, self.lookup, self.source, self.at = items, lookup, source, 0

    def peek(self) -> Item | None:
        return self.items[self.at] if self.at < len(self.items) else None

    def level(self, number: int, depth: int) -> Value:
        if depth > _DEEPEST:
            raise _CannotTell
        if number == len(_LEVELS):
            return self.unary(depth)
        left = self.level(number + 1, depth)
        while self.peek() in _LEVELS[number]:
            operator = str(self.items[self.at])
            self.at += 1
            left = self.combine(operator, left, self.level(number + 1, depth))
        return left

    def unary(self, depth: int) -> Value:
        item = self.peek()
        self.at += 1
        if isinstance(item, Symbol):
            return Value((item,))
        if item is None:
            raise _CannotTell
        if item == "(":
            inner = self.level(0, depth + 1)
            if self.peek() != ")":
                raise _CannotTell
            self.at += 1
            return inner
        if item in "+-":
            return self.combine(item, const(0), self.unary(depth + 1)) if depth < _DEEPEST else self._stop()
        if "#" in item:
            base, _, digits = item.partition("#")
            if digits:
                return self._number(digits, int(base))
            return self.unary(depth + 1) if depth < _DEEPEST else self._stop()  # 10#$x
        if item[0].isdigit():
            octal = len(item) > 1 and item[0] == "0" and item.isdigit()
            return self._number(item, 8 if octal else 16 if item[:2].lower() == "0x" else 10)
        if item[0].isalpha() or item[0] == "_":
            if self.peek() == "=":
                raise _CannotTell
            value = self.lookup(item)
            return const(0) if value.text == "" else value
        raise _CannotTell

    def _stop(self) -> Value:
        raise _CannotTell

    def _number(self, text: str, base: int) -> Value:
        if len(text) > 18 or not 2 <= base <= 36:
            raise _CannotTell
        try:
            return const(int(text, base))
        except ValueError:
            raise _CannotTell from None

    def combine(self, operator: str, left: Value, right: Value) -> Value:
        a, b = left.number, right.number
        if a is not None and b is not None and left.is_const and right.is_const:
            return const(_exact(operator, a, b))
        low, high = _bounds(operator, left, right)
        kinds = {s.kind for v in (left, right) for s in v.symbols}
        details = [s.detail for v in (left, right) for s in v.symbols]
        kind = kinds.pop() if len(kinds) == 1 else "number"
        if kind == "unknown" or (kind == "number" and "unknown" in kinds):
            return Value((Symbol("unknown", self.source, low, high, True),))
        detail = self.source or "".join(details)
        return Value((Symbol("number" if kind == "choice" else kind, detail, low, high, True),))


def _exact(operator: str, a: int, b: int) -> int:
    match operator:
        case "+":
            result = a + b
        case "-":
            result = a - b
        case "*":
            result = a * b
        case "/":
            result = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        case "%":
            result = abs(a) % abs(b) * (-1 if a < 0 else 1)
        case "**" if 0 <= b < 64:
            result = a**b
        case "<<" if 0 <= b < 63:
            result = a << b
        case ">>" if 0 <= b < 63:
            result = a >> b
        case "==" | "!=" | "<" | "<=" | ">" | ">=":
            result = int({"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[operator])
        case "&":
            result = a & b
        case "|":
            result = a | b
        case "&&":
            result = int(bool(a and b))
        case "||":
            result = int(bool(a or b))
        case _:
            raise _CannotTell
    if abs(result) > _BIG:
        raise _CannotTell
    return result


def _bounds(operator: str, left: Value, right: Value) -> tuple[int | None, int | None]:
    low_a, high_a, low_b, high_b = left.low, left.high, right.low, right.high
    match operator:
        case "+":
            return _add(low_a, low_b), _add(high_a, high_b)
        case "-":
            return (
                low_a - high_b if low_a is not None and high_b is not None else None,
                high_a - low_b if high_a is not None and low_b is not None else None,
            )
        case "%" if low_b is not None and low_b == high_b and low_b > 0:
            negative = low_a is None or low_a < 0
            return (1 - low_b if negative and not left.has("job_id") else 0), low_b - 1
        case "*" if low_a is not None and low_b is not None and low_a >= 0 and low_b >= 0:
            return low_a * low_b, high_a * high_b if high_a is not None and high_b is not None else None
        case "/" if low_b is not None and low_b > 0 and low_a is not None and low_a >= 0:
            low = low_a // high_b if high_b is not None else 0
            return low, high_a // low_b if high_a is not None else None
        case _:
            return None, None


def _add(a: int | None, b: int | None) -> int | None:
    return a + b if a is not None and b is not None else None
