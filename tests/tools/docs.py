"""Check the documentation: every link between its pages, and to files of the repository, leads somewhere."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def broken() -> list[str]:
    """Links that lead nowhere, as 'page: target'."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("endpoints/**/*.md")]
    links = ((page, target) for page in pages for target in _LINK.findall(page.read_text(encoding="utf-8")))
    return [
        f"{page.relative_to(ROOT)}: {target}"
        for page, target in links
        if "://" not in target and not target.startswith("mailto:") and not (page.parent / target).exists()
    ]


def main() -> int:
    wrong = broken()
    print("\n".join(wrong) if wrong else "every link leads somewhere")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
