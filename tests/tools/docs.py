"""Check the documentation, and build it: links lead somewhere, and each ``maple`` command line is one."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "build" / "docs"
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```[^\n]*\n(.*?)^```", re.M | re.S)
_INDENTED = re.compile(r"(?:^    [^\n]*\n)+", re.M)
_INLINE = re.compile(r"`(maple [^`]+)`")


def pages() -> list[Path]:
    """Every page of the documentation."""
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("endpoints/**/*.md")])


def broken() -> list[str]:
    """Links that lead nowhere, as 'page: target'."""
    return [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages()
        for target in _LINK.findall(_prose(page.read_text(encoding="utf-8")))
        if "://" not in target and not target.startswith("mailto:") and not _leads(page, target)
    ]


def _prose(text: str) -> str:
    return _FENCE.sub("", text)


def _leads(page: Path, target: str) -> bool:
    name, mark, anchor = target.partition("#")
    file = page.parent / name if name else page
    if not file.exists():
        return False
    return not mark or anchor in _anchors(file.read_text(encoding="utf-8"))


def _anchors(text: str) -> set[str]:
    """The anchors that headings get where Markdown is rendered: lower case, no punctuation, blanks as dashes."""
    headings = re.findall(r"^#+ (.+)$", _prose(text), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def commands(text: str) -> Iterator[list[str]]:
    """The words after ``maple`` of every command line in the code blocks of a page."""
    blocks = [*_FENCE.findall(text), *_INDENTED.findall(_prose(text))]
    for block in blocks:
        for line in re.sub(r"\\\n\s*", " ", block).split("\n"):
            for part in re.split(r"&&|;(?= )|\|\||(?<![\w'\"])\|(?!\|)", line):
                yield from _words(part)


def _words(part: str) -> Iterator[list[str]]:
    stripped = part.strip().removeprefix("$ ")
    if not stripped.startswith("maple "):
        return
    lexer = shlex.shlex(stripped, posix=True, punctuation_chars="<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if set(word) <= set("<>"):
            break
        words.append(word)
    yield [word for word in words[1:] if word != "..."]


def refused() -> list[str]:
    """Command lines that the command does not take, as 'page: line: why'."""
    return [f"{page.relative_to(ROOT)}: {fault}" for page in pages() for fault in faults(page.read_text("utf-8"))]


def faults(text: str) -> Iterator[str]:
    """Those of one page, as 'line: why'."""
    for words in commands(text):
        if why := complaint(words):
            yield f"maple {shlex.join(words)}: {why}"
    for line in _INLINE.findall(_prose(text)):
        if why := unknown(line.split()[1:]):
            yield f"{line}: {why}"


def _found(words: list[str]) -> tuple[Any, list[str]]:
    """The command that the words name, and the words left for it."""
    from maple_parsl.cli import VERBS
    from maple_parsl.cli.lazy import load

    command, rest = load(words[0], VERBS[words[0]][0]), words[1:]
    while rest and rest[0] in getattr(command, "commands", getattr(command, "verbs", {})):
        context = command.context_class(command, info_name=command.name)
        command, rest = command.get_command(context, rest[0]), rest[1:]
    return command, rest


def complaint(words: list[str]) -> str | None:
    """Why the command line cannot be read; None when it can. Nothing is run."""
    from maple_parsl.cli import VERBS

    if words[:1] == ["--help"] or words[1:2] == ["--help"]:
        return None
    if not words or words[0] not in VERBS:
        return "there is no such command"
    command, rest = _found(words)
    try:
        command.make_context(command.name, rest)
    except Exception as error:  # typer's and Maple's own, both with what was wrong
        return str(getattr(error, "message", "") or error)
    return None


def unknown(words: list[str]) -> str | None:
    """The verb or the option that does not exist; for lines in running text, which may leave words out."""
    from maple_parsl.cli import VERBS

    if not words[:1] or not re.fullmatch(r"[a-z]+", words[0]):
        return None
    if words[0] not in VERBS:
        return "there is no such command"
    command, rest = _found(words)
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    rest = rest[: rest.index("--")] if "--" in rest else rest
    stated = [match[0] for word in rest if (match := re.match(r"--[a-z][a-z-]*", word))]
    return next((f"there is no option {name}" for name in stated if name not in {*known, "--help"}), None)


def main() -> int:
    wrong = broken() + refused()
    print("\n".join(wrong) if wrong else "every link leads somewhere, every command line is one")
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-c", "docs", ".", str(BUILT)]
    built = subprocess.run(build, cwd=ROOT, check=False).returncode
    if not built:
        print(f"built {BUILT.relative_to(ROOT)}/docs/index.html")
    return 1 if wrong or built else 0


if __name__ == "__main__":
    sys.exit(main())
