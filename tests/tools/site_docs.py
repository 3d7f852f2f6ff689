"""Pages of the sites, from their files: ``python -m tests.tools.site_docs`` writes docs/sites."""

from __future__ import annotations

import sys
from pathlib import Path

from maple_parsl.catalogue import Catalogue, SiteRecord
from maple_parsl.cli.sites.show import groups, shown

DOCS = Path(__file__).parents[2] / "docs"
_HEAD = "<!-- Written by python -m tests.tools.site_docs; change the site's file, not this page. -->\n\n"
_STATUS = {
    "production": "In production.",
    "ending": "Going out of service.",
    "restricted": "Not open to everybody.",
    "retired": "Retired; kept as a description, launches are refused.",
}


def catalogue() -> Catalogue:
    """The shipped catalogue alone."""
    return Catalogue.load({}, Path("/"))


def pages() -> dict[Path, str]:
    """Every page and its text."""
    known = catalogue()
    records = [known.get(name) for name in (*known.names(), *known.retired())]
    made = {DOCS / "sites" / f"{record.site.name}.md": page(record) for record in records}
    return {**made, DOCS / "sites" / "index.md": index(records)}


def index(records: list[SiteRecord]) -> str:
    """The list of sites."""
    rows = [
        f"| [{record.site.name}]({record.site.name}.md) | {_text(record.site.title)}"
        f" | {record.site.scheduler.kind} | {record.site.status} | {record.oldest} |"
        for record in sorted(records, key=lambda record: record.site.name)
    ]
    return (
        f"{_HEAD}# Sites\n\nOne page per site of the catalogue, written from its file. A fact that is not there was"
        " not found in a document: it is unknown, not guessed. [Add a site](../add_a_site.md) says how to write a"
        " file of your own.\n\n| site | title | scheduler | status | oldest fact checked on |\n|---|---|---|---|---|\n"
        + "\n".join(rows)
        + "\n"
    )


def page(record: SiteRecord) -> str:
    """One site."""
    site = record.site
    notes = [_STATUS[site.status], site.status_note or ""]
    notes.append(f"A job written by Maple has run there on {site.executed_on}." if site.executed_on else "")
    parts = [
        f"{_HEAD}# {_text(site.title)}",
        " ".join(note for note in notes if note),
        f"Facts from `{record.files[0].name}`; `maple sites show {site.name} --origins` prints them with every layer"
        " of yours.",
    ]
    if site.documentation:
        parts.append(f"The site's own documentation: <{site.documentation}>")
    parts += [_group(record, name, values) for name, values in groups(record).items() if values]
    return "\n\n".join(parts) + "\n"


def _group(record: SiteRecord, name: str, values: dict[str, object]) -> str:
    origin = record.origin(name or "name")
    rows = [f"| {key} | {_text(str(value)) if key == 'note' else _value(value)} |" for key, value in values.items()]
    source = f"`providers/{origin.file.name}`" if origin.source == str(origin.file) else _text(origin.source)
    return (
        f"## {name or 'site'}\n\nSource: {source}; checked on {origin.checked_on}.\n\n"
        "| fact | value |\n|---|---|\n" + "\n".join(rows)
    )


def _value(value: object) -> str:
    return "<br>".join(f"`{row}`" for row in shown(value).replace("|", "\\|").split("\n") if row)


def _text(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def stale() -> list[str]:
    """Pages that are missing, differ, or are of no site any more."""
    made = pages()
    wrong = [file for file, text in made.items() if not file.is_file() or file.read_text(encoding="utf-8") != text]
    wrong += [file for file in (DOCS / "sites").glob("*.md") if file not in made]
    return sorted(str(file.relative_to(DOCS.parent)) for file in wrong)


def main() -> int:
    made = pages()
    (DOCS / "sites").mkdir(exist_ok=True)
    for file in (DOCS / "sites").glob("*.md"):
        if file not in made:
            file.unlink()
    for file, text in made.items():
        file.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
