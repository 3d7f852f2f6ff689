"""``${NAME%…}``, ``${NAME/…}``, ``${NAME:…}``: a value with a piece taken off or replaced."""

from __future__ import annotations

import fnmatch
import re

from maple_parsl.script.values import Symbol, Value, const, sym, unknown


def changed(found: Value, rest: str, operator: str, name: str) -> Value:
    """The value after the operator that follows the name."""
    known = found.text
    if operator in "%#":
        return _stripped(found, rest)
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


def _stripped(found: Value, rest: str) -> Value:
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
