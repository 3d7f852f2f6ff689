"""The page of failures, from their signatures: ``python -m tests.tools.failure_docs`` writes docs/failures.md."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from maple_parsl.diagnosis.signature import Signature, load_signatures

PAGE = Path(__file__).parents[2] / "docs" / "failures.md"


def text() -> str:
    """The page: one heading a class, one row a signature."""
    known = load_signatures({})
    members: dict[str, list[Signature]] = {name: [] for name in known.classes}
    for entry in known.failure:
        members.setdefault(entry.fault_class, []).append(entry)
    parts = [
        "<!-- Written by python -m tests.tools.failure_docs from agents/correction/failures.toml. -->\n",
        "# Classes of failures\n",
        "What `maple diagnose` can name, by class. The texts in braces are filled in from the log. Where the cause can"
        " be seen before submission, the class of script checks that finds it is named; [classes](classes.md) lists"
        " those with their rules.\n",
    ]
    for name in sorted(members):
        scripts = ", ".join(f"[{of}](classes.md#{of.lower()})" for of in known.script_classes(name))
        parts.append(f"## {name}\n")
        parts.append(f"Checks before submission: {scripts or 'none'}.\n")
        if members[name]:
            parts.append("| cause | what to do |\n|---|---|")
            parts += [f"| {_cell(entry.cause)} | {'<br>'.join(map(_cell, entry.do))} |" for entry in members[name]]
            parts.append("")
    return "\n".join(parts)


def _cell(said: str) -> str:
    return re.sub(r"\s+", " ", said).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


def main() -> int:
    PAGE.write_text(text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
