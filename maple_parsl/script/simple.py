"""Simple commands: assignments, redirections, builtins, functions; everything else goes to the launchers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from maple_parsl.script import builtin, expand, idioms, launches
from maple_parsl.script.model import Arg, Command, Heredoc, Place, Variable
from maple_parsl.script.shell import Written
from maple_parsl.script.values import EMPTY, Value, const, unknown

if TYPE_CHECKING:
    from tree_sitter import Node

    from maple_parsl.script.walk import Walker

Redirect = tuple[str, Value]


def assignment(walker: Walker, node: Node) -> None:
    """``A=…``, ``A+=…``, ``A[i]=…``, ``A=( … )``."""
    assign(walker, node, "assign")


def assign(walker: Walker, node: Node, how: str, exported: bool | None = None) -> tuple[str, Value] | None:
    """Carry out one assignment; returns name and value."""
    target, source = node.child_by_field_name("name"), node.child_by_field_name("value")
    if target is None:
        return None
    index = None
    if target.type == "subscript":
        inner = target.child_by_field_name("name")
        index_node = target.child_by_field_name("index")
        if inner is None:
            return None
        index = walker.code.node(index_node) if index_node is not None else "0"
        target = inner
    name = walker.code.node(target)
    append = any(not c.is_named and c.type == "+=" for c in node.children)
    text = walker.code.node(source) if source is not None else ""
    items: tuple[Value, ...] | None = None
    old = walker.vars.get(name)
    if source is not None and source.type == "array":
        items, value = _array(walker, source)
        if append and old is not None:
            items = (*(old.items if old.items is not None else (old.value,)), *items) if items is not None else None
    else:
        value = expand.value(walker, source)
        if append:
            before = walker.lookup(name) if old is None or old.items is None else EMPTY
            value = before + value if old is not None else value
    if index is not None:
        kept = list(old.items) if old is not None and old.items is not None else None
        if kept is not None and index.isdigit() and int(index) <= len(kept):
            kept[int(index) : int(index) + 1] = [value]
            items = tuple(kept)
        value = old.value if old is not None else unknown(name)
    walker.assign(name, value, text, node.start_byte, "append" if append and how == "assign" else how, items, exported)
    return name, value


def _array(walker: Walker, node: Node) -> tuple[tuple[Value, ...] | None, Value]:
    items: list[Value] = []
    children = [child for child in node.children if child.is_named and child.type != "comment"]
    for child in children:
        for word in expand.words(walker, child):
            symbol = word.value.symbol
            if symbol and symbol.kind in ("host_list", "node_lines"):
                return None, word.value
            # Alone it may be any number of words; among others it stands for the value of an option.
            if word.value.is_unknown and child.type == "command_substitution" and len(children) == 1:
                return None, word.value
            items.append(word.value)
    return tuple(items), items[0] if items else EMPTY


def declaration(walker: Walker, node: Node) -> None:
    """``export``, ``declare``, ``local``, ``readonly``, ``typeset``."""
    keyword = walker.code.node(node.children[0])
    flags = "".join(walker.code.node(c) for c in node.children[1:] if c.type == "word")
    exports = keyword == "export" or ("x" in flags and keyword in ("declare", "typeset"))
    removes = keyword == "export" and "n" in flags
    if "f" in flags and "-" in flags:
        return
    how = {"local": "local", "readonly": "readonly"}.get(keyword, "export" if exports else "assign")
    for child in node.children[1:]:
        if child.type == "variable_assignment":
            name_node = child.child_by_field_name("name")
            if keyword in ("local", "declare", "typeset") and walker.calls and name_node is not None:
                _local(walker, walker.code.node(name_node))
            assign(walker, child, how, True if exports else None)
        elif child.type == "variable_name":
            name = walker.code.node(child)
            held = walker.vars.get(name)
            if exports:
                value = held.value if held else walker.lookup(name)
                items = held.items if held else None
                walker.vars[name] = Variable(
                    name, value, not removes, held.place if held else walker.code.place(child.start_byte), items
                )
            elif keyword == "local":
                _local(walker, name)
                walker.vars[name] = Variable(name, EMPTY, False, walker.code.place(child.start_byte))
        elif child.is_named and child.type not in ("word", "comment"):
            for arg in expand.words(walker, child):
                name, mark, rest = (arg.value.text or "").partition("=")
                if mark and name.isidentifier():
                    walker.assign(name, const(rest), arg.text, child.start_byte, how, None, exports or None)


def _local(walker: Walker, name: str) -> None:
    walker.locals.setdefault(name, walker.vars.get(name))


def unset(walker: Walker, node: Node) -> None:
    for child in node.children[1:]:
        name = walker.code.node(child)
        if child.is_named and name.isidentifier():
            builtin.forget(walker, name, child.start_byte)


def redirected(walker: Walker, node: Node) -> None:
    """A statement with redirections, here-documents among them."""
    body = node.child_by_field_name("body")
    redirects = list(node.children_by_field_name("redirect"))
    extra: list[Node] = []
    documents: list[Node] = []
    for redirect in list(redirects):
        if redirect.type == "heredoc_redirect":
            documents.append(redirect)
            redirects.extend(c for c in redirect.children if c.type in ("file_redirect", "herestring_redirect"))
            extra.extend(redirect.children_by_field_name("argument"))
    pairs = [pair for r in redirects if (pair := _redirect(walker, r))]
    after = [c for d in documents for c in d.children if c.is_named and c.type in ("pipeline", "command", "list")]
    with walker.kept("document", "stdin"):
        for document in documents:
            walker.document = _document(walker, document)
        for kind, value in pairs:
            if kind == "<":
                walker.stdin = idioms.output((_word("cat"), _word(value)), None, walker.context, walker.lookup)
            elif kind == "<<<":
                walker.stdin = value
        _body(walker, body, pairs, extra)
        for following in after:
            # "cat <<E | srun bash": the rest of the line stands inside the here-document's node.
            walker.statement(following)


def _body(walker: Walker, body: Node | None, pairs: list[Redirect], extra: list[Node]) -> None:
    if body is None:
        _to_file(walker, pairs, "cat")
        return
    if body.type == "command":
        command(walker, body, pairs, extra)
        return
    if walker.document is not None and body.type in ("compound_statement", "subshell", "while_statement"):
        walker.statement(body)
        return
    if walker.output is not None and any(kind in (">", ">>", "&>") for kind, _ in pairs):
        with walker.kept("output"):
            walker.output = []
            walker.statement(body)
        return
    walker.statement(body)


def _word(value: Value | str) -> Arg:
    return Arg(const(value) if isinstance(value, str) else value, str(value), Place(1, 1))


def _redirect(walker: Walker, node: Node) -> Redirect | None:
    if node.type == "herestring_redirect":
        inside = [c for c in node.children if c.is_named]
        return ("<<<", expand.value(walker, inside[-1])) if inside else None
    if node.type != "file_redirect":
        return None
    operator = next((c.type for c in node.children if not c.is_named), ">")
    target = node.child_by_field_name("destination")
    if target is None:
        return None
    if target.type == "process_substitution":
        inner = [c for c in target.children if c.is_named]
        return (operator + "(", walker.captured(inner))
    return operator, expand.value(walker, target)


def _document(walker: Walker, node: Node) -> Written | None:
    start = next((c for c in node.children if c.type == "heredoc_start"), None)
    body = next((c for c in node.children if c.type == "heredoc_body"), None)
    if start is None or body is None:
        return None
    mark = walker.code.node(start)
    expands = mark.strip("\"'\\") == mark
    parts = expand.heredoc(walker, body, expands)
    index = len(walker.record.heredocs)
    walker.record.heredocs.append(
        Heredoc(
            walker.code.node(body),
            walker.code.place(body.start_byte),
            mark.strip("\"'\\"),
            expands,
            walker.command,
            None,
        )
    )
    return Written(parts, walker.code, index)


def _to_file(walker: Walker, pairs: list[Redirect], name: str) -> None:
    for kind, target in pairs:
        if kind in (">", ">|", ">>", "&>") and walker.document is not None and name in ("cat", "tee"):
            keep_document(walker, target)
        elif kind == ">" and walker.document is None and name in ("echo", "printf", "cat"):
            walker.record.files.pop(str(target), None)


def keep_document(walker: Walker, target: Value) -> None:
    """The here-document at hand becomes a file."""
    document = walker.document
    if document is None:
        return
    walker.write(target, document)
    if document.heredoc is not None:
        held = walker.record.heredocs[document.heredoc]
        walker.record.heredocs[document.heredoc] = replace(held, file=target, command=held.command or "cat")


def command(walker: Walker, node: Node, pairs: list[Redirect] | None = None, extra: list[Node] | None = None) -> None:
    """One simple command."""
    pairs = list(pairs or ())
    prefix: list[Node] = []
    nodes: list[Node] = []
    for child in node.children:
        kind = child.type
        if kind == "variable_assignment":
            prefix.append(child)
        elif kind == "command_name":
            nodes.append(child.children[0] if child.child_count else child)
        elif kind in ("file_redirect", "herestring_redirect"):
            pair = _redirect(walker, child)
            if pair:
                pairs.append(pair)
        elif child.is_named and kind != "comment":
            nodes.append(child)
    nodes.extend(extra or ())
    first = walker.code.node(nodes[0]).rpartition("/")[2] if nodes else ""
    with walker.kept("command", "launching"):
        walker.command, walker.launching = first[:60], launches.is_launcher(first)
        own = walker.vars
        if prefix and nodes:
            walker.vars = dict(own)
        for child in prefix:
            assign(walker, child, "prefix" if nodes else "assign", True if nodes else None)
        # Words are expanded before the prefix is in force: A=1 cmd $A sees the old A.
        during, walker.vars = walker.vars, own if nodes else walker.vars
        words = [word for child in nodes for word in expand.words(walker, child)]
        for kind, value in pairs:
            if kind == "<" and walker.stdin is None:
                walker.stdin = idioms.output((_word("cat"), _word(value)), None, walker.context, walker.lookup)
            elif kind in ("<<<", "<("):
                walker.stdin = value
        if not words:
            return
        made = Command(
            tuple(words),
            walker.code.place(node.start_byte),
            walker.context,
            walker.background,
            walker.conditional > 0,
            walker.loop,
            tuple(pairs),
        )
        walker.command = made.name or str(words[0].value)[:60]
        walker.launching = launches.is_launcher(walker.command)
        walker.record.commands.append(made)
        walker.vars = during
        run(walker, made, pairs)
        if prefix:
            walker.vars = own


def run(walker: Walker, made: Command, pairs: list[Redirect]) -> None:
    """Do what a command does: builtin, function, or a program."""
    name = made.name
    words = made.words
    _to_file(walker, pairs, name)
    handler = builtin.HANDLERS.get(name)
    if name in walker.record.functions:
        walker.call(name, list(words[1:]))
    elif handler is not None:
        handler(walker, made)
    elif not walker.quiet:
        _literals(walker, words, launches.run(walker, made), name)
    if walker.output is not None:
        walker.output.append(idioms.output(words, walker.stdin, walker.context, walker.lookup))


_TEXT_COMMANDS = frozenset("awk gawk sed perl grep egrep trap echo printf python python3 eval find jq [".split())


def _literals(walker: Walker, words: tuple[Arg, ...], used: frozenset[int], name: str) -> None:
    if name in _TEXT_COMMANDS:
        return
    for index, word in enumerate(words):
        if index not in used and any(isinstance(part, str) and "$" in part for part, _, _ in word.origins):
            walker.never(word)
