"""Pages of the rules, from the registry: ``python -m tests.tools.rule_docs`` writes docs/rules and docs/classes.md."""

from __future__ import annotations

import sys
from pathlib import Path

from maple_parsl.checking.about import classes, ids, index, markdown

DOCS = Path(__file__).parents[2] / "docs"


def pages() -> dict[Path, str]:
    """Every generated file and its text."""
    made = {DOCS / "rules" / f"{name}.md": markdown(name) for name in ids()}
    return {**made, DOCS / "rules" / "index.md": index(), DOCS / "classes.md": classes()}


def stale() -> list[str]:
    """Files that are missing, differ, or are of no rule any more."""
    made = pages()
    wrong = [file for file, text in made.items() if not file.is_file() or file.read_text(encoding="utf-8") != text]
    wrong += [file for file in (DOCS / "rules").glob("*.md") if file not in made]
    return sorted(str(file.relative_to(DOCS.parent)) for file in wrong)


def main() -> int:
    made = pages()
    (DOCS / "rules").mkdir(exist_ok=True)
    for file in (DOCS / "rules").glob("*.md"):
        if file not in made:
            file.unlink()
    for file, text in made.items():
        file.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
