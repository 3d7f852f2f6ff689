"""Sphinx: ``make docs`` builds these pages, strictly, to build/docs."""

from __future__ import annotations

import re
from typing import Any

from maple_parsl.version import VERSION

project = "Maple"
author = "The Maple developers"
release = version = VERSION
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "Maple"
html_show_copyright = False
root_doc = "docs/index"
source_suffix = {".md": "markdown"}
# The root of the repository is the source folder, so that links to README and CONTRIBUTING lead to pages as well.
include_patterns = ["docs/**", "*.md", "endpoints/*.md", "tests/testbeds/*/README.md"]
myst_heading_anchors = 3
# Pages of rules are reached from their list: in the navigation of each page they would make it ten times as long.
suppress_warnings = ["toc.not_included"]

# Added here, so that the pages stay plain Markdown where the repository is read.
_TREE = """
```{toctree}
:hidden:
:glob:
:maxdepth: 1
:caption: CAPTION

PAGES
```
"""
_CHAPTERS = {
    "Start": ["../README", "tutorials/*", "comparison"],
    "Pages": ["*", "sites/index", "rules/index", "../endpoints/*"],
    "Project": ["../CONTRIBUTING", "../CHANGELOG"],
}


def _tree(caption: str, pages: list[str]) -> str:
    return _TREE.replace("CAPTION", caption).replace("PAGES", "\n".join(pages))


def _prepare(app: Any, name: str, source: list[str]) -> None:
    """Add the navigation; links to folders, which have no page, become text."""
    text = re.sub(r"\[([^\]]*)\]\((?!\w+:)[^)#]*/\)", r"\1", source[0])
    if name == root_doc:
        text += "".join(_tree(caption, pages) for caption, pages in _CHAPTERS.items())
    elif name == "docs/sites/index":
        text += _tree("", ["*"]).replace(":caption: \n", "")
    source[0] = text


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _prepare)
