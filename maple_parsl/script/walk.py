"""Walks a script's syntax tree the way bash would run it, without running anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from maple_parsl.script import conditions, expand, idioms, simple
from maple_parsl.script.model import Arg, Context, Fault, Launch, Variable
from maple_parsl.script.shell import State
from maple_parsl.script.syntax import Code, faults
from maple_parsl.script.values import EMPTY, Value, choice, const, sym, unknown

if TYPE_CHECKING:
    from tree_sitter import Node

_SILENT = frozenset(["comment", "\n", ";", "&", ";;", "word", "variable_name"])
_COUNTED = re.compile(r"\b(\w+)=\$\(\(|\(\(\s*(\w+)\s*(?:\+\+|--|\+=|-=)|\blet\s+['\"]?(\w+)")


class Walker(State):
    """Follows statements in order; both sides of what cannot be decided."""

    def run(self, code: Code) -> None:
        """Walk a whole text."""
        self.code = code
        root = code.tree()
        if root.end_byte < len(code.data.rstrip()):
            self.record.faults.append(Fault("too_complex", code.place(root.end_byte), "the rest is not read"))
        self.record.faults.extend(faults(code, root))
        self.statements(root.children)

    def statements(self, nodes: list[Node]) -> None:
        """Statements in order, until one ends the shell; ``&`` behind one puts it in the background."""
        for index, node in enumerate(nodes):
            if self.ended:
                return
            follows = nodes[index + 1].type if index + 1 < len(nodes) else ""
            if follows == "&" and node.type not in _SILENT:
                with self.kept("background", "ended", "vars"):
                    self.background = True
                    self.vars = dict(self.vars)
                    self.statement(node)
            else:
                self.statement(node)

    def statement(self, node: Node) -> None:
        """One statement of any kind."""
        kind = node.type
        if kind in _SILENT or not node.is_named:
            return
        if not self.enter():
            return
        try:
            handler = _HANDLERS.get(kind)
            if handler is not None:
                handler(self, node)
            elif node.child_count:
                self.statements(node.children)
        finally:
            self.leave()

    # -- compound statements

    def pipeline(self, node: Node) -> None:
        stages = [child for child in node.children if child.is_named]
        stdin = self.stdin
        with self.kept("stdin", "ended", "vars", "document"):
            for stage in stages[:-1]:
                stdin = self.captured([stage], stdin)
            if stages:
                self.stdin = stdin
                last = stages[-1]
                # The last stage of a pipeline is a shell of its own, too.
                self.vars = dict(self.vars)
                self.statement(last)

    def captured(self, nodes: list[Node], stdin: Value | None = None) -> Value:
        """What statements print."""
        with self.kept("output", "stdin", "vars", "ended", "conditional", "background"):
            self.output, self.stdin, self.vars = [], stdin, dict(self.vars)
            self.statements(nodes)
            outputs = [o for o in self.output if o != EMPTY]
        if not outputs:
            return EMPTY
        return outputs[0] if len(outputs) == 1 else unknown(" ".join(str(o) for o in outputs))

    def substitute(self, node: Node) -> Value:
        """The value of ``$( … )`` or backquotes."""
        with self.kept("quiet"):
            self.quiet = True
            return self._substituted(node)

    def _substituted(self, node: Node) -> Value:
        children = [c for c in node.children if c.is_named and c.type != "comment"]
        if len(children) == 1 and children[0].type in ("file_redirect", "redirected_statement"):
            target = children[0].child_by_field_name("destination")
            if target is not None and "<" in self.code.node(children[0])[:2]:
                return idioms.output((), expand.value(self, target), self.context, self.lookup)
        value = self.captured(children)
        text = value.text
        return const(text.rstrip("\n")) if text is not None else value

    def either(self, node: Node) -> None:
        """``a && b``, ``a || b``."""
        left, operator, right = node.children[0], "", None
        for child in node.children[1:]:
            if not child.is_named:
                operator = child.type
            elif operator:
                right = child
        truth = conditions.statement_truth(self, left)
        if right is None:
            return
        wanted = operator == "&&"
        if truth is None:
            self.alternatives([lambda: self.statement(right)], exhaustive=False)
        elif truth == wanted:
            self.statement(right)

    def if_(self, node: Node) -> None:
        branches: list[tuple[list[Node], list[Node]]] = []
        otherwise: list[Node] | None = None
        condition: list[Node] = []
        body: list[Node] = []
        in_body = False
        for child in node.children:
            if child.type == "then":
                in_body = True
            elif child.type == "elif_clause":
                branches.append(_split(child, "then"))
            elif child.type == "else_clause":
                otherwise = child.children[1:]
            elif child.type in ("if", "fi"):
                continue
            elif in_body:
                body.append(child)
            else:
                condition.append(child)
        branches.insert(0, (condition, body))
        possible: list[list[Node]] = []
        decided = False
        for test, then in branches:
            truth = conditions.truth(self, test)
            if truth is False:
                continue
            possible.append(then)
            if truth:
                decided = True
                break
        if not decided and otherwise is not None:
            possible.append(otherwise)
        exhaustive = decided or otherwise is not None
        if exhaustive and len(possible) == 1:
            self.statements(possible[0])
            return
        self.alternatives([_later(self, nodes) for nodes in possible], exhaustive)

    def case(self, node: Node) -> None:
        subject = expand.value(self, node.child_by_field_name("value"))
        bodies: list[list[Node]] = []
        exhaustive = False
        for item in node.children:
            if item.type != "case_item":
                continue
            patterns = [self.code.node(p).strip("\"'") for p in item.children_by_field_name("value")]
            verdict = conditions.matches(subject, patterns)
            if verdict is False:
                continue
            bodies.append([c for c in item.children if c not in item.children_by_field_name("value")])
            if verdict or "*" in patterns:
                exhaustive = True
                break
        if exhaustive and len(bodies) == 1:
            self.statements(bodies[0])
            return
        self.alternatives([_later(self, nodes) for nodes in bodies], exhaustive)

    def loop_(self, node: Node) -> None:
        header = self.code.node(node).split("\n")[0][:120]
        body = node.child_by_field_name("body")
        if node.type == "for_statement":
            variable = node.child_by_field_name("variable")
            items = [a.value for n in node.children_by_field_name("value") for a in expand.words(self, n)]
            over = items if node.children_by_field_name("value") else [a.value for a in self.positional]
            if not over and node.children_by_field_name("value"):
                return
            value = _loop_value(over)
            if variable is not None:
                self.assign(self.code.node(variable), value, header, node.start_byte, "loop")
        elif node.type == "while_statement":
            for child in node.children_by_field_name("condition"):
                self.statement(child)
        else:
            for child in node.children:
                if child is not body and child.is_named and child.type == "variable_assignment":
                    name = child.child_by_field_name("name")
                    if name is not None:
                        self.assign(self.code.node(name), sym("loop", header, 0), header, child.start_byte, "loop")
        if body is None:
            return
        with self.kept("loop"):
            self.loop = header
            self._turning(body)
            before = dict(self.vars)
            self.alternatives([_later(self, [body])], exhaustive=node.type == "for_statement")
            self._counted(before)

    def _turning(self, body: Node) -> None:
        """What the body counts up is a number of the turn, from the first on."""
        for match in _COUNTED.finditer(self.code.node(body)):
            name = match[1] or match[2] or match[3]
            held = self.vars.get(name)
            if held is not None and held.value.number is not None:
                value = sym("loop", name, held.value.number)
                self.vars[name] = Variable(name, value, held.exported, held.place)

    def _counted(self, before: Mapping[str, Variable]) -> None:
        """What a loop's body changes from turn to turn."""
        for name, held in list(self.vars.items()):
            old = before.get(name)
            if old is not None and old is not held and held.value != old.value and old.value.has("loop"):
                self.vars[name] = Variable(name, sym("loop", name, old.value.low), held.exported, held.place)

    def subshell(self, node: Node) -> None:
        with self.kept("vars", "ended", "allexport"):
            self.vars = dict(self.vars)
            self.statements(node.children)

    def function(self, node: Node) -> None:
        name = node.child_by_field_name("name")
        body = node.child_by_field_name("body")
        if name is not None and body is not None:
            self.record.functions[self.code.node(name)] = (self.code, body)

    def call(self, name: str, args: list[Arg]) -> None:
        """A function's body, at its call."""
        if name in self.calls or len(self.calls) >= 12 or not self.enter():
            return
        try:
            code, body = self.record.functions[name]
            with self.kept("code", "positional", "calls", "ended", "returned", "locals", "codes"):
                self.code, self.positional, self.calls = code, args, (*self.calls, name)
                self.returned, self.locals, self.codes = [], {}, []
                self.statement(body)
                codes = {None if code is None else code == 0 for code in self.codes}
                status = codes.pop() if len(codes) == 1 and self.ended else None
                states = [*self.returned, *(() if self.ended else (self.vars,))]
                if states:
                    self.vars = dict(self._joined(states))
                for local, before in self.locals.items():
                    if before is None:
                        self.vars.pop(local, None)
                    else:
                        self.vars[local] = before
                leaves = not states
            self.ended, self.status = self.ended or leaves, status
        finally:
            self.leave()

    # -- other shells

    def nested(
        self,
        code: Code,
        context: Context,
        positional: list[Arg],
        environment: Mapping[str, Variable],
        name: str = "",
        worker: bool = False,
    ) -> list[Launch]:
        """Walk the text a further shell runs, and return what it starts."""
        if not self.enter():
            return []
        names = ("code", "vars", "hidden", "context", "positional", "sink", "output", "stdin", "document", "calls",
                 "ended", "allexport", "background", "worker", "conditional", "command", "launching", "returned",
                 "locals", "quiet", "codes")  # fmt: skip
        try:
            with self.kept(*names):
                own = frozenset(n for n in self.vars if n not in environment)
                self.hidden = self.hidden | own if context != "batch" else self.hidden
                self.vars = dict(environment)
                self.context, self.positional, self.worker = context, positional, self.worker or worker
                self.sink, self.output, self.stdin, self.document = [], None, None, None
                self.calls, self.ended, self.background = (*self.calls, name or "shell"), False, False
                self.returned, self.locals, self.quiet, self.codes = [], {}, False, []
                self.command, self.launching = "", False
                self.run(code)
                return self.sink
        finally:
            self.leave()

    def in_same_shell(self, code: Code) -> None:
        """Text that this very shell runs: ``eval``, ``source``."""
        if not self.enter():
            return
        try:
            with self.kept("code", "ended"):
                self.run(code)
        finally:
            self.leave()


def _split(node: Node, mark: str) -> tuple[list[Node], list[Node]]:
    before: list[Node] = []
    after: list[Node] = []
    target = before
    for child in node.children[1:]:
        if child.type == mark:
            target = after
        else:
            target.append(child)
    return before, after


def _later(walker: Walker, nodes: list[Node]) -> Callable[[], object]:
    return lambda: walker.statements(nodes)


def _loop_value(over: list[Value]) -> Value:
    if len(over) == 1:
        symbol = over[0].symbol
        if symbol and symbol.kind in ("host_list", "node_lines"):
            return sym("loop_host", symbol.detail)
        return over[0] if over[0].is_const else sym("loop", str(over[0]))
    if over and len(over) <= 8:
        return choice(over)
    numbers = [v.number for v in over]
    known = [n for n in numbers if n is not None]
    return sym("loop", "", min(known), max(known)) if known and len(known) == len(over) else sym("loop")


def _redirected(walker: Walker, node: Node) -> None:
    simple.redirected(walker, node)


_HANDLERS = {
    "command": simple.command,
    "redirected_statement": _redirected,
    "variable_assignment": simple.assignment,
    "declaration_command": simple.declaration,
    "unset_command": simple.unset,
    "pipeline": Walker.pipeline,
    "list": Walker.either,
    "if_statement": Walker.if_,
    "case_statement": Walker.case,
    "for_statement": Walker.loop_,
    "while_statement": Walker.loop_,
    "c_style_for_statement": Walker.loop_,
    "select_statement": Walker.loop_,
    "subshell": Walker.subshell,
    "function_definition": Walker.function,
    "test_command": conditions.visit,
    "negated_command": conditions.negated,
}
