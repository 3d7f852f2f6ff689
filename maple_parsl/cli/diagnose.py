"""``maple diagnose``: what failed first, and what to change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from maple_parsl.diagnosis import Cause, Diagnosis, LogSource
    from maple_parsl.site import Site

_SUBMISSION = ("sbatch", "qsub", "submit", "submission")


def command(
    logs: Annotated[list[str], typer.Argument(help="Logs (also .gz; - reads standard input), or the id of a run.")],
    script: Annotated[Path | None, typer.Option(help="The batch script of the job.")] = None,
    site: Annotated[str | None, typer.Option(help="The site: name, alias, or path of a site file.")] = None,
    accounting: Annotated[Path | None, typer.Option(help="Output of sacct or qstat -f.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> Any:
    """Find the first cause of a failed launch in its logs, and say what to change.

    Exit code 0: a cause is named. 1: none was recognised. 2: a file cannot be read.
    """
    from maple_parsl.cli.output import emit_json
    from maple_parsl.diagnosis import diagnose

    sources, record = _sources(logs)
    result = diagnose(
        sources,
        script=_text(script) if script else None,
        site=_site(site) if site else None,
        accounting=_text(accounting) if accounting else None,
        exit_record=record,
    )
    if json:
        emit_json(result.model_dump(mode="json", by_alias=True))
    else:
        _show(result)
    return 0 if result.causes else 1


def _sources(names: list[str]) -> tuple[list[LogSource], dict[str, Any] | None]:
    import sys

    from maple_parsl.diagnosis import LogSource

    found: list[LogSource] = []
    record: dict[str, Any] | None = None
    for name in names:
        if name == "-":
            found.append(LogSource("standard input", stream=sys.stdin.buffer))
            continue
        path = Path(name)
        if path.is_dir():
            found += [_file(inner) for inner in sorted(path.rglob("*")) if inner.is_file() and _is_log(inner)]
            record = record or _record(path)
        elif path.exists():
            found.append(_file(path))
        elif folder := _run_folder(name):
            found += [_file(inner) for inner in sorted(folder.rglob("*")) if inner.is_file() and _is_log(inner)]
            record = record or _record(folder)
        else:
            raise typer.BadParameter(f"{name}: there is no such file and no such run")
    for source in found:
        if source.path is not None:
            _readable(source.path)
    return found, record


def _file(path: Path) -> LogSource:
    from maple_parsl.diagnosis import LogSource

    submission = path.name.lower().startswith(_SUBMISSION)
    return LogSource(str(path), path=path, kind="submission" if submission else "log")


def _is_log(path: Path) -> bool:
    name = path.name.removesuffix(".gz")
    return name.endswith((".log", ".out", ".err", ".txt")) or name in ("stdout", "stderr", "output")


def _run_folder(name: str) -> Path | None:
    """The folder of a run, by its id or the beginning of it; None for what is no run."""
    from maple_parsl.errors import MapleError
    from maple_parsl.runs.run import Run

    try:
        return Run.open(name).fetched()
    except MapleError:
        return None


def _record(folder: Path) -> dict[str, Any] | None:
    import json

    try:
        value = json.loads((folder / "exit.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _readable(path: Path) -> None:
    if path.is_dir():
        raise typer.BadParameter(f"{path} is a folder")
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise typer.BadParameter(f"{path}: {(error.strerror or str(error)).lower()}") from None


def _text(path: Path) -> str:
    _readable(path)
    with path.open("rb") as stream:
        return stream.read(16 << 20).decode("utf-8", "surrogateescape")


def _site(name: str) -> Site:
    from maple_parsl.catalogue import Catalogue

    return Catalogue.load().get(name).site


def _show(result: Diagnosis) -> None:
    from rich.text import Text

    from maple_parsl.cli.output import clean, console

    out = console()
    for number, cause in enumerate(result.causes):
        title = "First cause" if number == 0 else "Also"
        out.print(Text.assemble((f"{title}: ", "bold red"), (clean(cause.fault_class), "bold"), f"  {_at(cause)}"))
        out.print(Text(f"  {clean(cause.explanation)}"))
        out.print(Text(f"  {clean(cause.evidence.file)}:{cause.evidence.line}", style="cyan"))
        out.print(Text(f"  {cause.evidence.line:>6} | {clean(cause.evidence.text)}", style="dim"))
        if cause.evidence.frame:
            out.print(Text(f"  raised in {clean(cause.evidence.frame)}"))
        for place, edit in enumerate(cause.edits):
            out.print(Text(f"  {'do' if place == 0 else 'or'}: {clean(edit.words)}"))
            if edit.old is not None and edit.new is not None:
                out.print(Text(f"    line {edit.line} of the script"))
                out.print(Text(f"    - {clean(edit.old)}", style="red"))
                out.print(Text(f"    + {clean(edit.new)}", style="green"))
        if cause.alternatives:
            out.print(Text(f"  It could also be: {', '.join(cause.alternatives)}"))
        out.print()
    if not result.causes:
        out.print(Text("No cause was recognised. Lines to look at first:", style="bold"))
    for evidence in result.suspicious:
        out.print(Text(f"  {clean(evidence.file)}:{evidence.line} | {clean(evidence.text)}", style="dim"))
    if result.consequences:
        names = dict.fromkeys(f"{c.signature} ({c.evidence.file}:{c.evidence.line})" for c in result.consequences)
        out.print(Text(clean(f"Consequences: {', '.join(names)}"), style="dim"))
    for notice in result.notices:
        out.print(Text(f"note: {clean(notice)}", style="yellow"))


def _at(cause: Cause) -> str:
    parts = [f"to be changed: the {cause.where}", f"{cause.confidence:.0%} sure"]
    if cause.rank is not None:
        parts.append(f"rank {cause.rank}")
    if cause.host:
        parts.append(f"on {cause.host}")
    return f"({', '.join(parts)})"
