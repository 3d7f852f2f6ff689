"""Tests a script makes, as far as they can be decided: True, False, or None."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING

from maple_parsl.script import expand
from maple_parsl.script.values import Value

if TYPE_CHECKING:
    from tree_sitter import Node

    from maple_parsl.script.walk import Walker

_NUMBERS = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge", "<", ">", "<=", ">="}


def truth(walker: Walker, nodes: list[Node]) -> bool | None:
    """Of a condition's statements: the last one counts."""
    result: bool | None = None
    for node in nodes:
        if node.is_named and node.type != "comment":
            result = statement_truth(walker, node)
    return result


def statement_truth(walker: Walker, node: Node) -> bool | None:
    """Walk a statement and tell how it ends, where that is certain."""
    if node.type == "test_command":
        inside = [c for c in node.children if c.is_named]
        return _test(walker, inside[0]) if len(inside) == 1 else _visit_all(walker, inside)
    if node.type == "negated_command":
        inside = [c for c in node.children if c.is_named]
        result = statement_truth(walker, inside[0]) if len(inside) == 1 else None
        return None if result is None else not result
    if node.type == "list":
        walker.statement(node)
        return None
    walker.status = None
    walker.statement(node)
    if node.type != "command":
        return None
    text = walker.code.node(node)
    return {"true": True, ":": True, "false": False}.get(text, walker.status)


def visit(walker: Walker, node: Node) -> None:
    """A test standing alone: its variables are noted."""
    statement_truth(walker, node)


def negated(walker: Walker, node: Node) -> None:
    for child in node.children:
        if child.is_named:
            walker.statement(child)


def _visit_all(walker: Walker, nodes: list[Node]) -> bool | None:
    for node in nodes:
        expand.value(walker, node)
    return None


def _test(walker: Walker, node: Node) -> bool | None:
    kind = node.type
    if not walker.enter():
        return None
    try:
        if kind == "parenthesized_expression":
            inside = [c for c in node.children if c.is_named]
            return _test(walker, inside[0]) if len(inside) == 1 else None
        if kind == "unary_expression":
            operator = walker.code.node(node.children[0])
            if operator == "!":
                result = _test(walker, node.children[-1])
                return None if result is None else not result
            value = expand.value(walker, node.children[-1])
            return _unary(operator, value)
        if kind == "binary_expression":
            return _binary(walker, node)
        value = expand.value(walker, node)
        return _unary("-n", value)
    finally:
        walker.leave()


def _unary(operator: str, value: Value) -> bool | None:
    if operator not in ("-n", "-z") or value.assumed:
        return None
    text = value.text
    if text is not None:
        return bool(text) == (operator == "-n")
    symbol = value.symbol
    if any(isinstance(part, str) and part for part in value.parts):
        return operator == "-n"
    certain = symbol is not None and symbol.kind in (
        "first_host", "host_list", "nodelist", "job_id", "batch_host", "node_count", "per_task",
    )  # fmt: skip
    return (operator == "-n") if certain else None


def _binary(walker: Walker, node: Node) -> bool | None:
    children = node.children
    if len(children) < 3:
        return None
    operator = walker.code.node(children[1])
    if operator in ("&&", "||", "-a", "-o"):
        left, right = _test(walker, children[0]), _test(walker, children[-1])
        both = operator in ("&&", "-a")
        if both:
            return False if False in (left, right) else True if left and right else None
        return True if True in (left, right) else False if left is False and right is False else None
    left_value, right_value = expand.value(walker, children[0]), expand.value(walker, children[-1])
    if left_value.assumed or right_value.assumed:
        return None
    if operator in _NUMBERS:
        return _compare(operator, left_value, right_value)
    a, b = left_value.text, right_value.text
    if a is None or b is None or operator not in ("=", "==", "!="):
        return None
    # In [[ ]] the right side is a pattern.
    equal = fnmatch.fnmatchcase(a.strip(), b.strip()) if "*" in b or "?" in b else a.strip() == b.strip()
    return equal == (operator != "!=")


def _compare(operator: str, left: Value, right: Value) -> bool | None:
    a, b = left.number, right.number
    if a is None or b is None:
        return None
    return {
        "-eq": a == b, "-ne": a != b, "-lt": a < b, "-le": a <= b, "-gt": a > b, "-ge": a >= b,
        "<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b,
    }[operator]  # fmt: skip


def matches(subject: Value, patterns: list[str]) -> bool | None:
    """Whether a ``case`` subject matches one of the patterns."""
    text = subject.text
    if text is None or subject.assumed or any("$" in p or "`" in p for p in patterns):
        return None
    return any(fnmatch.fnmatchcase(text, p) for p in patterns)
