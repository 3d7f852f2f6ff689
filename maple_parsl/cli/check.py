"""``maple check``: what is wrong with a launch script, anyone's."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from maple_parsl.errors import ConfigurationError, RequestError

if TYPE_CHECKING:
    from maple_parsl.checking.project import Project
    from maple_parsl.checking.report import FileReport, Report
    from maple_parsl.checking.text import Painter


class Format(StrEnum):
    """Forms of the report."""

    text = "text"
    json = "json"
    sarif = "sarif"
    github = "github"


def command(
    files: Annotated[list[str] | None, typer.Argument(metavar="FILE...", help="Scripts; - reads one.")] = None,
    site: Annotated[str | None, typer.Option(help="The site: name, alias, or path of a site file.")] = None,
    fix: Annotated[bool, typer.Option("--fix", help="Apply the safe changes to the files.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show the safe changes; write nothing.")] = False,
    format: Annotated[Format, typer.Option(help="Form of the report.")] = Format.text,
    map: Annotated[bool, typer.Option("--map", help="Show who runs where, as the script reads.")] = False,
    rule: Annotated[list[str] | None, typer.Option(metavar="ID", help="Apply this rule alone; repeat.")] = None,
    explain: Annotated[str | None, typer.Option(metavar="RULE", help="Say what a rule is about.")] = None,
    live: Annotated[bool, typer.Option("--live", help="Ask this machine's scheduler too; reads only.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings fail too.")] = False,
    baseline: Annotated[Path | None, typer.Option(help="File of known findings.")] = None,
    write_baseline: Annotated[bool, typer.Option("--write-baseline", help="Note all findings as known.")] = False,
) -> int:
    """Check launch scripts: launchers, ranks, devices, rendezvous, queues and more. Nothing of them is run.

    Exit code 0: nothing of error severity. 1: something. 2: a file or the configuration cannot be read.
    """
    if explain:
        from maple_parsl.checking.about import markdown

        sys.stdout.write(markdown(explain))
        return 0
    if not files:
        raise typer.BadParameter("name at least one script, or - for standard input")
    from maple_parsl.checking.project import Project

    try:
        project = Project(Path.cwd(), site, tuple(rule or ()), baseline)
        named = [(name, *_read(name)) for name in dict.fromkeys(files)]
        if write_baseline:
            return _write_baseline(project, named)
        made = [_one(project, *entry, fix=fix and not diff, diff=diff) for entry in named]
        strict = strict or any(project.config(path).strict for _, path, _ in named)
    except ConfigurationError as error:
        raise RequestError(str(error)) from None
    report = _report((file for file, _ in made), [path for _, path, _ in named] if live else [])
    diffs = "".join(text for _, text in made)
    _print(report, format, diffs, strict)
    if map:
        _print_maps(project, report, sys.stdout if format is Format.text else sys.stderr)
    return report.exit_code(strict)


def _read(name: str) -> tuple[Path | None, bytes]:
    from maple_parsl.checking.files import MOST, read_file

    if name != "-":
        return Path(name), read_file(Path(name))
    data = sys.stdin.buffer.read(MOST + 1)
    if len(data) > MOST:
        raise RequestError(f"standard input: more than {MOST >> 20} MiB; this is no script")
    return None, data


def _one(
    project: Project, name: str, path: Path | None, data: bytes, *, fix: bool, diff: bool
) -> tuple[FileReport, str]:
    """The report on one file, after fixing where that is wanted, and the changes made or shown."""
    shown = "<stdin>" if path is None else name
    report = project.check(data, shown, path)
    if not (fix or diff):
        return report, ""
    from maple_parsl.checking.difference import unified
    from maple_parsl.checking.edits import safe
    from maple_parsl.checking.files import write_file
    from maple_parsl.checking.fixing import mend
    from maple_parsl.finding import Finding

    def findings(text: bytes) -> list[Finding]:
        return list(project.check(text, shown, path).findings)

    mended = mend(data, findings, safe, list(report.findings))
    if mended.data == data:
        return report, ""
    changes = unified(data, mended.data, shown)
    if fix and path is not None:
        write_file(path, data, mended.data)
        report = project.check(mended.data, shown, path)
    return report, changes


def _report(files: Iterable[FileReport], asked: list[Path | None]) -> Report:
    from maple_parsl.checking.report import Report

    reports = list(files)
    notices: list[str] = []
    if asked:
        from maple_parsl.schedulers.live import ask_live

        for number, (report, path) in enumerate(zip(list(reports), asked, strict=True)):
            found, said = ask_live(report.script, path)
            reports[number] = report.with_findings([*report.findings, *found])
            notices += said
    return Report(tuple(reports), tuple(dict.fromkeys(notices)))


def _print(report: Report, format: Format, diffs: str, strict: bool) -> None:
    from maple_parsl.terminal import clean

    if format is Format.text:
        from maple_parsl.checking.text import as_text

        sys.stdout.write(clean(diffs) + ("\n" if diffs else ""))
        sys.stdout.write(_encodable(as_text(report, _painter(), strict=strict)))
        return
    if format is Format.json:
        from maple_parsl.checking.formats import as_json

        told = as_json(report)
        if diffs:
            told["diff"] = diffs
        sys.stdout.write(json.dumps(told, indent=2, ensure_ascii=True) + "\n")
    elif format is Format.sarif:
        from maple_parsl.checking.formats import as_sarif

        sys.stdout.write(as_sarif(report))
    else:
        from maple_parsl.checking.formats import as_github

        sys.stdout.write(_encodable(as_github(report)))


def _encodable(text: str) -> str:
    """What this terminal's encoding cannot show becomes ``?``."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


def _painter() -> Painter:
    import shutil

    from maple_parsl.checking.text import Painter

    terminal = sys.stdout.isatty()
    columns = os.environ.get("COLUMNS", "")
    width = shutil.get_terminal_size((100, 24)).columns if terminal else int(columns) if columns.isdigit() else 100
    return Painter(terminal and not os.environ.get("NO_COLOR"), min(width or 100, 120))


def _print_maps(project: Project, report: Report, stream: IO[str]) -> None:
    from maple_parsl.checking.rankmap_text import map_text
    from maple_parsl.terminal import clean

    for file in report.files:
        site = project.catalogue.get(file.site).site if file.site else None
        stream.write(f"\n{clean(file.file)}\n{map_text(file.script, site)}")


def _write_baseline(project: Project, named: list[tuple[str, Path | None, bytes]]) -> int:
    from maple_parsl.checking import baseline

    targets = {project.baseline_file(path) for _, path, _ in named}
    target = targets.pop() if len(targets) == 1 else None
    if target is None:
        raise RequestError('where to? name one place for all with --baseline FILE, or baseline = "..." in .maple.toml')
    project.forget_baselines([target])
    reports = [project.check(data, name, path) for name, path, data in named if path is not None]
    try:
        target.write_text(baseline.dump(reports, target.absolute().parent), encoding="utf-8")
    except OSError as error:
        raise RequestError(f"{target}: {(error.strerror or str(error)).lower()}") from None
    count = sum(len(report.findings) for report in reports)
    sys.stderr.write(f"{count} finding{'' if count == 1 else 's'} noted as known in {target}\n")
    return 0
